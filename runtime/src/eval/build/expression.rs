//! Expressions: trees where nothing suspends, operations before them where something does.

use super::Lowering;
use crate::eval::node::{
    self, AnyStatement, Argument, BigIntLiteral, Built, Conditional, Constant, Delete, Elements, Expression, Items,
    LogicalNode, MakeIterator, Not, ObjectLiteral, ObjectRest, OpKind, Part, Prefix, Record, Regex, RequireObject,
    Sequence, Spread, Template, TemplateObject, ToText, Uninitialized, Variable, WriteGlobal, local,
};
use crate::value::Value;
use crate::value::atom::Atom;
use agentscript_lang::program::{self, Binary, Element, Expr, ExprKind, Logical, Place, Property, Slot, TextId, Unary};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Most operands of usual calls and operators.
pub(super) const USUAL: usize = 4;

/// Most properties of an object literal that are looked for among those before them: with more, it is built part by part.
const MAX_RECORD: usize = 24;

/// Most later operands that are searched for an assignment to a variable, because searching all of them takes
/// quadratic time.
pub(super) const MANY: usize = 64;

impl Lowering<'_, '_> {
    /// An expression that cannot suspend.
    pub(super) fn tree(&mut self, expr: &Expr<'_>) -> Expression {
        self.value(expr).node()
    }

    pub(super) fn variable(&self, variable: &program::Variable, at: u32) -> Variable {
        let name = self.builder.atom(variable.name);
        let place = self.place(variable.reference);
        Variable { place, name, checked: self.builder.program.is_checked(variable), at }
    }

    /// A regular expression, which the resolver has checked.
    fn regexp(&self, source: TextId, pattern: u32, at: u32) -> Built {
        let flags = self.builder.program.patterns[pattern as usize];
        let shared = Arc::clone(&self.builder.literals[pattern as usize]);
        // Those of the prelude have no numbers: they are compiled once per process.
        let number = if self.builder.is_prelude { u32::MAX } else { pattern };
        Built::from_node(Regex { source: self.builder.atom(source), flags, number, shared, at })
    }

    /// Emit the operations of an expression; gives the expression of its value.
    pub(super) fn value(&mut self, expr: &Expr<'_>) -> Built {
        self.builder.note(super::NODE_BYTES);
        let at = expr.span.start;
        match &expr.kind {
            ExprKind::Undefined => Built::Constant(Constant(Value::UNDEFINED)),
            ExprKind::Null => Built::Constant(Constant(Value::NULL)),
            ExprKind::Bool(value) => Built::Constant(Constant(Value::bool(*value))),
            ExprKind::Number(value) => Built::Constant(Constant(Value::foreign_number(*value))),
            ExprKind::String(text) => Built::Node(self.builder.literal(*text)),
            ExprKind::Regex(source, pattern) => self.regexp(*source, *pattern, at),
            ExprKind::BigInt(text) => {
                Built::from_node(BigIntLiteral(self.builder.text(*text).parse().unwrap_or_default()))
            }
            ExprKind::Template(head, rest) => {
                Built::from_node(Template { head: self.builder.atom(*head), parts: self.holes(rest, at), at })
            }
            ExprKind::TemplateObject(index) => Built::from_node(TemplateObject(*index)),
            ExprKind::Array(elements) => self.array(elements, at),
            ExprKind::Object(site, properties) => self.object(*site, properties, at),
            ExprKind::Function(id) => {
                let captures = self.builder.program.functions[id.0 as usize].captures.into();
                Built::from_node(node::Function { code: self.builder.function_ref(id.0), captures })
            }
            ExprKind::Read(variable) => match self.variable(variable, at) {
                Variable { place: Place::Global(index), .. } if self.builder.is_prelude => {
                    // Functions of the prelude refer to each other by number, as the prelude has no state.
                    let name = Some(self.builder.program.globals[index as usize]);
                    let functions = &self.builder.program.functions;
                    let function = functions.iter().position(|function| function.name == name);
                    Built::from_node(node::PreludeFunction(self.builder.function_ref(function.unwrap_or(0) as u32)))
                }
                variable => variable.read(),
            },
            ExprKind::Write(variable, value) => {
                let variable = self.variable(variable, at);
                Built::Node(variable.write(self.tree(value)))
            }
            ExprKind::WriteConst(variable, value) => {
                let variable = self.variable(variable, at);
                variable.write_const(self.value(value).node())
            }
            ExprKind::Update { variable, delta, prefix } => {
                Built::Node(self.variable(variable, at).update(f64::from(*delta), *prefix))
            }
            ExprKind::Temp(slot) => Built::Local(node::Local(slot.0 as usize)),
            ExprKind::SetTemp(slot, value) if self.is_script_pattern(value) => self.begin_pattern(*slot, value),
            ExprKind::SetTemp(slot, value) => Built::Node(node::write_slot(slot.0 as usize, self.tree(value))),
            ExprKind::Global(name) => self.global(*name, false, at),
            ExprKind::TypeofGlobal(name) => {
                let operand = self.global(*name, true, at).node();
                Built::from_node(Prefix { operator: Unary::Typeof, operand, at })
            }
            ExprKind::WriteGlobal(name, value) => {
                let name = self.builder.atom(*name);
                Built::from_node(WriteGlobal { name, value: self.value(value).node(), at })
            }
            ExprKind::Uninitialized(name) => Built::from_node(Uninitialized { name: self.builder.atom(*name), at }),
            ExprKind::Member(object, name) => {
                let name = self.builder.atom(*name);
                node::member(self.value(object), name, at)
            }
            ExprKind::Index(object, key) => {
                let [object, key] = self.operands([object, key]);
                node::index(object, key, at)
            }
            ExprKind::SetMember(object, name, value) => {
                let [object, value] = self.operands([object, value]);
                Built::Node(node::set_member(object, self.builder.atom(*name), value.node(), at))
            }
            ExprKind::SetIndex(object, key, value) => {
                let [object, key, value] = self.operands([object, key, value]);
                Built::Node(node::set_index(object, key, value.node(), at))
            }
            ExprKind::DeleteMember(object, name) => {
                let key = self.builder.literal(*name);
                Built::from_node(Delete { object: self.value(object).node(), key, at })
            }
            ExprKind::DeleteIndex(object, key) => {
                let [object, key] = self.operands([object, key]);
                Built::from_node(Delete { object: object.node(), key: key.node(), at })
            }
            ExprKind::Unary(Unary::Not, operand) => Built::from_node(Not(self.value(operand).node())),
            ExprKind::Unary(Unary::Minus, operand) if matches!(operand.kind, ExprKind::Number(_)) => {
                let ExprKind::Number(number) = operand.kind else { return Built::Constant(Constant(Value::NAN)) };
                Built::Constant(Constant(Value::foreign_number(-number)))
            }
            ExprKind::Unary(operator, operand) => {
                let operator = *operator;
                local!(self.value(operand), operand => Built::from_node(Prefix { operator, operand, at }))
            }
            ExprKind::Binary(operator @ (Binary::StrictEqual | Binary::StrictNotEqual), left, right)
                if matches!(right.kind, ExprKind::String(_)) =>
            {
                let left = self.value(left);
                self.same(left, right, *operator == Binary::StrictNotEqual)
            }
            ExprKind::Binary(operator, left, right) => {
                let [left, right] = self.operands([left, right]);
                node::binary(*operator, left, right, at)
            }
            ExprKind::Chain(chain) => self.chain(chain, at),
            ExprKind::Logical(operator, left, right) => self.logical(*operator, left, right),
            ExprKind::Conditional(test, yes, no) => self.conditional(test, yes, no),
            ExprKind::Sequence(expressions) => self.sequence(expressions),
            ExprKind::Call(call) => self.call(call, expr),
            ExprKind::New(new) => self.construct(new.names, new.arguments, expr),
            ExprKind::Await(value) => {
                let slot = self.temp();
                self.await_into(value, slot, at);
                Built::Local(node::Local(slot.0 as usize))
            }
            ExprKind::RequireObject { value, first, origin } => {
                let first = first.map(|first| self.builder.atom(first));
                Built::from_node(RequireObject { value: self.value(value).node(), first, origin: *origin, at })
            }
            ExprKind::ObjectRest(slot, taken) => {
                let taken = self.nodes(taken.iter()).into();
                Built::from_node(ObjectRest { object: slot.0 as usize, taken, at })
            }
            ExprKind::Iterator(value, origin) => {
                Built::from_node(MakeIterator { value: self.value(value).node(), origin: *origin, at })
            }
            ExprKind::IteratorNext(slot) if self.builder.iterables => self.pattern_item(*slot, at),
            ExprKind::IteratorRest(slot) if self.builder.iterables => self.pattern_rest(*slot, at),
            ExprKind::IteratorNext(slot) => Built::from_node(node::IteratorNext(slot.0 as usize)),
            ExprKind::IteratorRest(slot) => Built::from_node(node::IteratorRest(slot.0 as usize)),
            ExprKind::IteratorClose(slot) => self.end_pattern(*slot, at),
            ExprKind::Yield(value) => self.yielding(value, at),
            ExprKind::YieldStar(items) => self.delegate(items, at),
            ExprKind::GeneratorStart => {
                self.at = at;
                self.emit(OpKind::GeneratorStart);
                Built::Constant(Constant(Value::UNDEFINED))
            }
        }
    }

    /// `value === expr`, or `!==`.
    pub(super) fn same(&mut self, value: Built, expr: &Expr<'_>, negated: bool) -> Built {
        if let ExprKind::String(text) = expr.kind {
            return node::same_text(value, self.builder.program.text(text), negated);
        }
        let operator = if negated { Binary::StrictNotEqual } else { Binary::StrictEqual };
        let right = self.value(expr);
        node::binary(operator, value, right, expr.span.start)
    }

    /// An expression that cannot suspend as a statement.
    pub(super) fn effect_tree(&mut self, expr: &Expr<'_>) -> AnyStatement {
        match &expr.kind {
            ExprKind::Update { variable, delta, .. } => {
                // The value is not used, so the prefix form will do.
                self.variable(variable, expr.span.start).update(f64::from(*delta), true)
            }
            _ => self.tree(expr),
        }
    }

    /// Emit an expression for its effect.
    pub(super) fn effect(&mut self, expr: &Expr<'_>) {
        match &expr.kind {
            ExprKind::Sequence(expressions) => expressions.iter().for_each(|expr| self.effect(expr)),
            ExprKind::Write(variable, value) if let Some(slot) = self.variable(variable, expr.span.start).slot() => {
                self.into_slot(value, Slot(slot as u32));
            }
            _ => {
                let built = self.value(expr);
                self.at(expr.span);
                if !matches!(built, Built::Local(_) | Built::Constant(_)) {
                    self.emit(OpKind::Eval(built.node()));
                }
            }
        }
    }

    /// Emit an expression and store its value in a slot.
    pub(super) fn into_slot(&mut self, expr: &Expr<'_>, slot: Slot) {
        match &expr.kind {
            ExprKind::Call(call) if expr.splits && self.is_op(call) => self.call_into(call, slot, expr.span),
            ExprKind::Await(value) => self.await_into(value, slot, expr.span.start),
            _ => {
                let value = self.value(expr).node();
                self.at(expr.span);
                self.set(slot, value);
            }
        }
    }

    pub(super) fn await_into(&mut self, value: &Expr<'_>, slot: Slot, at: u32) {
        let value = self.value(value).node();
        self.at = at;
        self.emit(OpKind::Await(value, slot));
    }

    pub(super) fn operands<const N: usize>(&mut self, exprs: [&Expr<'_>; N]) -> [Built; N] {
        if !exprs[1..].iter().any(|expr| expr.splits) {
            return exprs.map(|expr| self.value(expr));
        }
        let mut built = self.operand_list(&exprs).into_iter();
        exprs.map(|_| built.next().unwrap_or(Built::Constant(Constant(Value::UNDEFINED))))
    }

    /// The same as nodes.
    pub(super) fn nodes<'e, 'p: 'e>(&mut self, exprs: impl Iterator<Item = &'e Expr<'p>> + Clone) -> Vec<Expression> {
        // As large as it has to be: it is not moved then.
        let mut nodes = Vec::with_capacity(exprs.clone().count());
        if exprs.clone().all(|expr| !expr.splits) {
            for expr in exprs {
                nodes.push(self.value(expr).node());
            }
            return nodes;
        }
        let exprs: SmallVec<[&Expr<'_>; USUAL]> = exprs.collect();
        nodes.extend(self.operand_list(&exprs).into_iter().map(Built::node));
        nodes
    }

    /// Build expressions that are evaluated in order. Those before one that can suspend are saved to temporaries,
    /// unless they cannot change.
    pub(super) fn operand_list(&mut self, exprs: &[&Expr<'_>]) -> SmallVec<[Built; USUAL]> {
        let last = exprs.iter().rposition(|expr| expr.splits).unwrap_or(0);
        let mut built = SmallVec::with_capacity(exprs.len());
        for (index, expr) in exprs.iter().enumerate() {
            let value = self.value(expr);
            let changes = index < last && !matches!(&expr.kind, ExprKind::Read(variable) if self.is_constant(variable));
            built.push(if changes { self.save(value, &exprs[index + 1..=last]) } else { value });
        }
        built
    }

    /// Whether a variable is read from a slot that nothing changes after its declaration.
    fn is_constant(&self, variable: &program::Variable) -> bool {
        let program = self.builder.program;
        !program.is_assigned(variable)
            && !program.is_checked(variable)
            && matches!(self.place(variable.reference), Place::Slot(_))
    }

    /// The expressions of a template with the texts after them; each is converted to text before the next is evaluated.
    fn holes(&mut self, holes: &[(Expr<'_>, TextId)], at: u32) -> Box<[(Expression, Atom)]> {
        let last = holes.iter().rposition(|(hole, _)| hole.splits).unwrap_or(0);
        let mut built = Vec::with_capacity(holes.len());
        for (index, (hole, text)) in holes.iter().enumerate() {
            let mut value = self.value(hole).node();
            if index < last {
                let slot = self.temp();
                self.set(slot, Box::new(ToText { value, at }));
                value = Box::new(node::Local(slot.0 as usize));
            }
            built.push((value, self.builder.atom(*text)));
        }
        built.into()
    }

    /// A value that is not changed by what is evaluated after it: saved to a temporary where it could be.
    pub(super) fn save(&mut self, value: Built, later: &[&Expr<'_>]) -> Built {
        match value {
            Built::Constant(_) => value,
            Built::Local(local) if later.len() <= MANY && !later.iter().any(|expr| self.assigns(expr, local.0)) => {
                value
            }
            value => {
                let slot = self.temp();
                self.set(slot, value.node());
                Built::Local(node::Local(slot.0 as usize))
            }
        }
    }

    fn array(&mut self, elements: &[Element<'_>], at: u32) -> Built {
        let exprs = elements.iter().filter_map(|element| match element {
            Element::Hole => None,
            Element::Item(value) | Element::Spread(value) => Some(value),
        });
        let spreads = elements.iter().any(|element| matches!(element, Element::Spread(_)));
        if spreads && (self.builder.iterables || exprs.clone().any(|expr| expr.splits)) {
            return self.spread_array(elements, at);
        }
        let exprs: SmallVec<[&Expr<'_>; USUAL]> = exprs.collect();
        let nodes = self.nodes(exprs.iter().copied());
        if elements.iter().all(|element| matches!(element, Element::Item(_))) {
            return Built::from_node(Items(nodes.into()));
        }
        let mut nodes = nodes.into_iter();
        let elements = elements
            .iter()
            .map(|element| match element {
                Element::Hole => None,
                Element::Item(_) => nodes.next().map(|value| Argument { value, spread: None }),
                Element::Spread(part) => {
                    nodes.next().map(|value| Argument { value, spread: Some(Spread::Element(part.span)) })
                }
            })
            .collect();
        Built::from_node(Elements { elements, at })
    }

    fn object(&mut self, site: u32, properties: &[Property<'_>], at: u32) -> Built {
        let mut keys: SmallVec<[Atom; USUAL]> = SmallVec::with_capacity(properties.len());
        let mut values: SmallVec<[&Expr<'_>; USUAL]> = SmallVec::with_capacity(properties.len());
        for property in properties {
            let Property::Named(name, value) = property else { return self.object_of_parts(properties, at) };
            let name = self.builder.atom(*name);
            if keys.contains(&name) || keys.len() == MAX_RECORD {
                return self.object_of_parts(properties, at);
            }
            keys.push(name);
            values.push(value);
        }
        let values = self.nodes(values.iter().copied());
        Built::from_node(Record {
            site: (self.builder.first_site + site) as usize,
            properties: keys.into_iter().zip(values).collect(),
        })
    }

    /// An object literal of any kind. Each part is added before the next one is evaluated: if that one can suspend, the parts
    /// before it are added to an object in a temporary.
    fn object_of_parts(&mut self, properties: &[Property<'_>], at: u32) -> Built {
        let mut parts = Vec::new();
        let mut object = None;
        let replaced = replaced(properties);
        for (index, property) in properties.iter().enumerate() {
            let splits = match property {
                Property::Named(_, value) | Property::Spread(value) => value.splits,
                Property::Computed(key, value) => key.splits || value.splits,
            };
            if splits && !parts.is_empty() {
                let parts = std::mem::take(&mut parts).into();
                let slot = object.unwrap_or_else(|| self.temp());
                self.at = at;
                self.set(slot, Box::new(ObjectLiteral { object, parts, at }));
                object = Some(slot);
            }
            parts.push(match property {
                Property::Named(_, value) if replaced.contains(&index) => Part::Replaced(self.tree(value)),
                _ => self.part(property, at),
            });
        }
        Built::from_node(ObjectLiteral { object, parts: parts.into(), at })
    }

    fn part(&mut self, property: &Property<'_>, at: u32) -> Part {
        match property {
            Property::Named(name, value) => Part::Named(self.builder.atom(*name), self.tree(value)),
            Property::Spread(value) => Part::Spread(self.tree(value)),
            Property::Computed(key, value) => {
                let mut key = self.tree(key);
                if value.splits {
                    let slot = self.temp();
                    self.at = at;
                    self.set(slot, Box::new(Prefix { operator: Unary::ToPropertyKey, operand: key, at }));
                    key = Box::new(node::Local(slot.0 as usize));
                }
                Part::Computed(key, self.tree(value), self.is_anonymous_function(value))
            }
        }
    }

    /// Whether it is an anonymous function, which takes the name of its binding.
    fn is_anonymous_function(&self, value: &Expr<'_>) -> bool {
        matches!(value.kind, ExprKind::Function(id) if self.builder.program.functions[id.0 as usize].name.is_none())
    }

    /// `a + b + c`: operators convert their operands before the next operand is evaluated.
    fn chain(&mut self, chain: &program::Chain<'_>, at: u32) -> Built {
        let program::Chain { first, rest } = chain;
        let last = rest.iter().rposition(|(_, operand)| operand.splits).map_or(0, |last| last + 1);
        let mut left = self.value(first);
        let mut pending: SmallVec<[(Binary, Built); USUAL]> = SmallVec::new();
        for (index, (operator, operand)) in rest.iter().enumerate() {
            if operand.splits && index > 0 {
                let folded = node::chain(left, pending.drain(..), at);
                left = self.save(folded, &[]);
            } else if operand.splits && !matches!(&first.kind, ExprKind::Read(read) if self.is_constant(read)) {
                let later: SmallVec<[&Expr<'_>; USUAL]> = rest[..last].iter().map(|(_, later)| later).collect();
                left = self.save(left, &later);
            }
            pending.push((*operator, self.value(operand)));
        }
        node::chain(left, pending.into_iter(), at)
    }

    fn logical(&mut self, operator: Logical, left: &Expr<'_>, right: &Expr<'_>) -> Built {
        if !right.splits {
            let left = self.value(left).node();
            let right = self.value(right).node();
            return Built::from_node(LogicalNode { operator, left, right });
        }
        let slot = self.temp();
        let end = self.target();
        self.into_slot(left, slot);
        let local: Expression = Box::new(node::Local(slot.0 as usize));
        self.emit(match operator {
            Logical::And => OpKind::JumpUnless(local, end.0 as u32),
            Logical::Or => OpKind::JumpIf(local, end.0 as u32),
            Logical::Coalesce => OpKind::JumpUnlessNullish(slot, end.0 as u32),
        });
        self.into_slot(right, slot);
        self.bind(end);
        Built::Local(node::Local(slot.0 as usize))
    }

    fn conditional(&mut self, test: &Expr<'_>, yes: &Expr<'_>, no: &Expr<'_>) -> Built {
        if !yes.splits && !no.splits {
            let test = self.value(test).node();
            let yes = self.value(yes).node();
            let no = self.value(no).node();
            return Built::from_node(Conditional { test, yes, no });
        }
        let slot = self.temp();
        let (other, end) = (self.target(), self.target());
        let test = self.value(test).node();
        self.emit(OpKind::JumpUnless(test, other.0 as u32));
        self.into_slot(yes, slot);
        self.jump(end);
        self.bind(other);
        self.into_slot(no, slot);
        self.bind(end);
        Built::Local(node::Local(slot.0 as usize))
    }

    fn sequence(&mut self, expressions: &[Expr<'_>]) -> Built {
        let Some(split) = expressions.iter().rposition(|expr| expr.splits) else {
            return Built::from_node(Sequence(self.nodes(expressions.iter()).into()));
        };
        // Everything up to the last suspension is emitted; the rest is the remaining expression.
        for expr in &expressions[..split] {
            self.effect(expr);
        }
        let rest = &expressions[split..];
        if let [last] = rest {
            return self.value(last);
        }
        self.effect(&rest[0]);
        Built::from_node(Sequence(self.nodes(rest[1..].iter()).into()))
    }
}

/// The properties of an object literal that V8 only evaluates: between a spread at the beginning and what is spread or computed
/// next, those whose names come again. So a key has the place of its last value among the others.
fn replaced(properties: &[Property<'_>]) -> HashSet<usize> {
    if !matches!(properties, [Property::Spread(_), Property::Named(..), ..]) {
        return HashSet::new();
    }
    let names = properties.iter().map(|property| match property {
        Property::Named(name, _) => Some(*name),
        Property::Computed(..) | Property::Spread(_) => None,
    });
    let last: HashMap<TextId, usize> =
        names.clone().enumerate().filter_map(|(index, name)| Some((name?, index))).collect();
    let first = names.enumerate().skip(1).map_while(|(index, name)| Some((name?, index)));
    first.filter(|(name, index)| last.get(name).is_some_and(|last| last > index)).map(|(_, index)| index).collect()
}
