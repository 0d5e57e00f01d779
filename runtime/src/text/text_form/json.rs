//! A sink that makes JSON values, of limited number.

use super::{Part, Sink};
use serde_json::{Map, Number, Value};

/// Makes a JSON value of the parts of a text: a list of rows, or the value of Python. Numbers that JSON does not have are `null`.
#[derive(Debug, Default)]
pub struct JsonBuilder {
    open: Vec<Open>,
    values: Vec<Value>,
    columns: Option<Vec<String>>,
    /// How many more parts it takes.
    room: usize,
}

/// The text has more parts than the builder takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

#[derive(Debug)]
enum Open {
    List(Vec<Value>),
    /// An object, and the name of its next value.
    Object(Map<String, Value>, String),
}

impl JsonBuilder {
    /// Creates a builder that takes so many parts.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    /// Returns the names of the columns of a table; `None` if they are not known.
    #[must_use]
    pub fn columns(&self) -> Option<&[String]> {
        self.columns.as_deref()
    }

    /// Returns the values: the rows of a table, or the one value of Python.
    #[must_use]
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }

    fn add(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object(members, name)) => {
                members.insert(std::mem::take(name), value);
            }
            None => self.values.push(value),
        }
    }
}

impl Sink for JsonBuilder {
    type Stop = TooLarge;

    fn part(&mut self, part: Part<'_>) -> Result<(), TooLarge> {
        let weight = if let Part::Row(cells) = part { 1 + cells.len() } else { 1 };
        self.room = self.room.checked_sub(weight).ok_or(TooLarge)?;
        match part {
            Part::List => self.open.push(Open::List(Vec::new())),
            Part::Object => self.open.push(Open::Object(Map::new(), String::new())),
            Part::Key(key) => {
                if let Some(Open::Object(_, name)) = self.open.last_mut() {
                    key.clone_into(name);
                }
            }
            Part::End => match self.open.pop() {
                Some(Open::List(items)) => self.add(Value::Array(items)),
                Some(Open::Object(members, _)) => self.add(Value::Object(members)),
                None => {}
            },
            Part::Text(text) => self.add(text.into()),
            Part::Number(number) => self.add(json_number(number)),
            Part::Boolean(is) => self.add(is.into()),
            Part::Null => self.add(Value::Null),
            Part::Columns(names) => self.columns = Some(names.to_vec()),
            Part::Row(cells) => {
                let cells = cells.iter().map(|cell| Value::from(cell.as_ref()));
                let row = match &self.columns {
                    Some(names) => names.iter().cloned().zip(cells).collect::<Map<_, _>>().into(),
                    None => Value::Array(cells.collect()),
                };
                self.add(row);
            }
        }
        Ok(())
    }
}

/// A number, without a point if it is an integer.
fn json_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 && !(number == 0.0 && number.is_sign_negative())
    {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}
