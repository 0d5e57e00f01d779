//! From events to nodes: what a scalar is stays open until its place is known.

use super::Failure;
use crate::limits::{MAX_DEPTH, MAX_YAML_VALUES};
use granit_parser::{Event, Parser, ScalarStyle, Tag, options};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The position of a node among all of a document.
pub type Id = usize;

/// Maximum number of objects that one merges, also by way of others; further ones are not merged.
const MAX_MERGED: usize = 32;

/// A node of a document. Aliases are positions that occur several times; no node contains itself.
#[derive(Debug)]
pub enum Node<'a> {
    Scalar(Text<'a>),
    List(Vec<Id>),
    Map(Vec<(Id, Id)>),
    /// The target of an alias without an anchor, or a list or an object that contains itself.
    Missing,
}

/// A scalar as its author wrote it.
#[derive(Debug)]
pub struct Text<'a> {
    pub text: Cow<'a, str>,
    pub kind: Kind,
    /// Where it is, from 1.
    pub line: usize,
}

impl Text<'_> {
    fn is_merge(&self) -> bool {
        self.text == "<<" && self.kind == Kind::Plain
    }
}

/// The rule for the type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is none.
    Empty,
    /// Its text and its place.
    Plain,
    /// It is a text: quotes, a block, or a tag say so.
    Quoted,
    /// Its tag says that it is a number.
    Number,
    /// Its tag says that it is a truth value.
    Truth,
    /// Its tag says that it is `null`.
    Null,
}

/// The nodes of a document.
#[derive(Debug, Default)]
pub struct Nodes<'a> {
    pub nodes: Vec<Node<'a>>,
    pub root: Option<Id>,
    pub problems: Vec<String>,
}

/// A list or an object whose end was not read.
enum Open {
    List(Vec<Id>),
    Map(Vec<(Id, Id)>, Option<Id>),
}

/// Composes the nodes of the first document of a text.
pub fn compose(text: &str) -> Result<Nodes<'_>, Failure> {
    let options = options! {
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut all = Nodes::default();
    let mut anchors: HashMap<usize, Id> = HashMap::new();
    // With the positions and anchors that they get.
    let mut open: Vec<(Id, usize, Open)> = Vec::new();
    let mut documents = 0;
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(event) => event,
            // An error after the description is no part of it.
            Err(_) if documents > 1 => break,
            Err(error) => return Err(Failure { line: error.marker().line(), column: error.marker().col() + 1 }),
        };
        let line = span.start.line();
        if all.nodes.len() >= MAX_YAML_VALUES {
            return Err(Failure { line, column: 1 });
        }
        let id = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let kind = kind(style, tag.as_deref(), span.is_empty());
                let id = all.add(Node::Scalar(Text { text, kind, line }));
                anchors.insert(anchor, id);
                id
            }
            Event::SequenceStart(_, anchor, _) => {
                open.push((all.add(Node::Missing), anchor, Open::List(Vec::new())));
                continue;
            }
            Event::MappingStart(_, anchor, _) => {
                open.push((all.add(Node::Missing), anchor, Open::Map(Vec::new(), None)));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some((id, anchor, whole)) = open.pop() else { continue };
                all.nodes[id] = match whole {
                    Open::List(items) => Node::List(items),
                    Open::Map(members, _) => Node::Map(members),
                };
                anchors.insert(anchor, id);
                id
            }
            Event::Alias(anchor) if anchors.contains_key(&anchor) => anchors[&anchor],
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                all.problems
                    .push(format!("line {line}: an alias refers to nothing, or to what it is in; it is left out"));
                all.add(Node::Missing)
            }
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    all.problems.push(format!("line {line}: only the first document is read"));
                    break;
                }
                continue;
            }
            _ => continue,
        };
        match open.last_mut() {
            Some((_, _, Open::List(items))) => items.push(id),
            Some((_, _, Open::Map(members, key))) => match key.take() {
                Some(key) => members.push((key, id)),
                None => *key = Some(id),
            },
            None => all.root = Some(id),
        }
    }
    Ok(all)
}

impl<'a> Nodes<'a> {
    fn add(&mut self, node: Node<'a>) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Returns the members of an object, with those of the objects that it merges (`<<`). Its own come first.
    pub fn members(&self, id: Id) -> Vec<(&Text<'a>, Id)> {
        let mut members = Vec::new();
        let mut merged = self.own_members(id, &mut members);
        if merged.is_empty() {
            return members;
        }
        let mut known: HashSet<&str> = members.iter().map(|(key, _)| &*key.text).collect();
        let mut visited = HashSet::new();
        merged.reverse();
        while let Some(source) = merged.pop() {
            if visited.len() < MAX_MERGED && visited.insert(source) {
                let mut others = Vec::new();
                let further = self.own_members(source, &mut others);
                merged.extend(further.into_iter().rev());
                members.extend(others.into_iter().filter(|(key, _)| known.insert(&key.text)));
            }
        }
        members
    }

    /// Appends the members of an object to `members`. Returns the objects that it merges.
    fn own_members<'n>(&'n self, id: Id, members: &mut Vec<(&'n Text<'a>, Id)>) -> Vec<Id> {
        let Node::Map(all) = &self.nodes[id] else { return Vec::new() };
        let mut merged = Vec::new();
        for &(key, value) in all {
            match (&self.nodes[key], &self.nodes[value]) {
                (Node::Scalar(key), Node::Map(_)) if key.is_merge() => merged.push(value),
                (Node::Scalar(key), Node::List(items)) if key.is_merge() => merged.extend(items),
                (Node::Scalar(key), _) => members.push((key, value)),
                (Node::List(_) | Node::Map(_) | Node::Missing, _) => {}
            }
        }
        merged
    }
}

/// Returns what decides the type of a scalar.
fn kind(style: ScalarStyle, tag: Option<&Tag>, is_empty: bool) -> Kind {
    let Some(tag) = tag else {
        return match style {
            ScalarStyle::Plain if is_empty => Kind::Empty,
            ScalarStyle::Plain => Kind::Plain,
            _ => Kind::Quoted,
        };
    };
    match tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() {
        Some("int" | "float") => Kind::Number,
        Some("bool") => Kind::Truth,
        Some("null") => Kind::Null,
        // `!!str`, `!!binary`, `!!timestamp`, and `!`, which says that it is none of the others.
        Some(_) => Kind::Quoted,
        None if tag.original() == "!" || style != ScalarStyle::Plain => Kind::Quoted,
        // A tag of others says nothing.
        None => Kind::Plain,
    }
}
