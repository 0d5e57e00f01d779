//! Finding a text in another in linear time, in parts between which the limits of the run are checked.

use crate::meter::Meter;
use crate::value::thrown::Result;

/// Units of a text that are searched between two charges. A longer text that is searched for is compared in parts, too.
const PART: usize = 64 << 10;
/// Units of the beginning that is searched for instead of a longer text.
const HEAD: usize = 1 << 10;
/// Units that are compared in about the time of one statement.
const UNITS_A_STEP: usize = 32;
/// Units that are compared one by one in that time.
const SINGLE_UNITS_A_STEP: usize = 8;

/// What texts are made of: bytes or UTF-16 code units.
pub trait Unit: Copy + Ord + From<u8> {
    /// The first position of a unit.
    fn position_in(self, text: &[Self]) -> Option<usize>;
    /// The first position of a text, in linear time.
    fn find(text: &[Self], wanted: &[Self]) -> Option<usize>;
    /// The last position of a text, in linear time.
    fn rfind(text: &[Self], wanted: &[Self]) -> Option<usize>;
}

impl Unit for u8 {
    #[inline]
    fn position_in(self, text: &[Self]) -> Option<usize> {
        memchr::memchr(self, text)
    }

    fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
        memchr::memmem::find(text, wanted)
    }

    fn rfind(text: &[u8], wanted: &[u8]) -> Option<usize> {
        memchr::memmem::rfind(text, wanted)
    }
}

impl Unit for u16 {
    fn position_in(self, text: &[Self]) -> Option<usize> {
        text.iter().position(|&unit| unit == self)
    }

    fn find(text: &[u16], wanted: &[u16]) -> Option<usize> {
        find_by_table(text.len(), wanted.len(), |at| text[at], |at| wanted[at])
    }

    fn rfind(text: &[u16], wanted: &[u16]) -> Option<usize> {
        let (last, end) = (text.len(), wanted.len());
        let from_end = find_by_table(last, end, |at| text[last - 1 - at], |at| wanted[end - 1 - at])?;
        Some(last - end - from_end)
    }
}

/// A search for the matches of a text from the left to the right.
pub struct Search<'a, U> {
    text: &'a [U],
    wanted: &'a [U],
    /// The text up to here is charged for.
    charged: usize,
}

impl<'a, U: Unit> Search<'a, U> {
    /// A search from a position on.
    pub fn new(text: &'a [U], wanted: &'a [U], from: usize) -> Self {
        Self { text, wanted, charged: from }
    }

    /// The first match at or after a position, which is not before those of earlier calls.
    pub fn next(&mut self, meter: &mut Meter, from: usize) -> Result<Option<usize>> {
        if self.wanted.len() > PART { self.next_long(meter, from) } else { self.next_short(meter, from) }
    }

    fn next_short(&mut self, meter: &mut Meter, from: usize) -> Result<Option<usize>> {
        let mut at = from;
        loop {
            if at + self.wanted.len() > self.charged {
                if at + self.wanted.len() > self.text.len() {
                    return Ok(None);
                }
                let end = self.text.len().min(at.max(self.charged) + self.wanted.len() + PART);
                meter.work((end - self.charged) / UNITS_A_STEP)?;
                self.charged = end;
            }
            if let Some(found) = find(&self.text[at..self.charged], self.wanted) {
                return Ok(Some(at + found));
            }
            at = self.charged + 1 - self.wanted.len();
        }
    }

    /// The beginning of the text is searched for first. That is fastest for most texts; its wasted work is bounded, and
    /// beyond the bound the search continues without it.
    fn next_long(&mut self, meter: &mut Meter, from: usize) -> Result<Option<usize>> {
        let (head, rest) = self.wanted.split_at(HEAD);
        let mut heads = Self { text: self.text, wanted: head, charged: self.charged };
        let (mut at, mut spent) = (from, 0);
        while spent <= 4 * (at - from) + PART {
            let Some(found) = heads.next_short(meter, at)? else { return Ok(None) };
            self.charged = heads.charged;
            if found + self.wanted.len() > self.text.len() {
                return Ok(None);
            }
            let same = common(meter, &self.text[found + HEAD..], rest)?;
            if same == rest.len() {
                return Ok(Some(found));
            }
            spent += HEAD + same;
            at = found + 1;
        }
        let (text, wanted) = (&self.text[at..], self.wanted);
        let found = two_way(meter, text.len(), wanted.len(), |at| text[at], |at| wanted[at])?;
        Ok(found.map(|found| at + found))
    }
}

/// A search for the last match of a text.
pub struct BackwardSearch<'a, U> {
    text: &'a [U],
    wanted: &'a [U],
    /// The text from here on is charged for.
    charged: usize,
}

impl<'a, U: Unit> BackwardSearch<'a, U> {
    /// A search in a text.
    pub fn new(text: &'a [U], wanted: &'a [U]) -> Self {
        Self { text, wanted, charged: text.len() }
    }

    /// The last match that ends no later than at a position.
    pub fn last(mut self, meter: &mut Meter, end: usize) -> Result<Option<usize>> {
        self.charged = end;
        if self.wanted.len() > PART { self.last_long(meter, end) } else { self.last_short(meter, end) }
    }

    fn last_short(&mut self, meter: &mut Meter, end: usize) -> Result<Option<usize>> {
        let mut end = end;
        loop {
            if end < self.charged + self.wanted.len() {
                if end < self.wanted.len() {
                    return Ok(None);
                }
                let next = self.charged.min(end).saturating_sub(self.wanted.len() + PART);
                meter.work((self.charged - next) / UNITS_A_STEP)?;
                self.charged = next;
            }
            if let Some(found) = U::rfind(&self.text[self.charged..end], self.wanted) {
                return Ok(Some(self.charged + found));
            }
            end = self.charged + self.wanted.len() - 1;
        }
    }

    /// As [`Search::next_long`], by the end of the text that is searched for.
    fn last_long(&mut self, meter: &mut Meter, end: usize) -> Result<Option<usize>> {
        let (rest, tail) = self.wanted.split_at(self.wanted.len() - HEAD);
        let mut tails = Self { text: self.text, wanted: tail, charged: self.charged };
        let (mut at, mut spent) = (end, 0);
        while spent <= 4 * (end - at) + PART {
            let Some(found) = tails.last_short(meter, at)? else { return Ok(None) };
            let Some(begin) = found.checked_sub(rest.len()) else { return Ok(None) };
            let same = common(meter, &self.text[begin..found], rest)?;
            if same == rest.len() {
                return Ok(Some(begin));
            }
            spent += HEAD + same;
            at = found + HEAD - 1;
        }
        let (text, wanted) = (&self.text[..at], self.wanted);
        let (last, most) = (text.len(), wanted.len());
        let found = two_way(meter, last, most, |at| text[last - 1 - at], |at| wanted[most - 1 - at])?;
        Ok(found.map(|found| last - most - found))
    }
}

/// How many units two texts have in common at their beginning.
pub fn common<U: Unit>(meter: &mut Meter, left: &[U], right: &[U]) -> Result<usize> {
    let mut at = 0;
    for (a, b) in left.chunks(PART).zip(right.chunks(PART)) {
        meter.work(a.len() / UNITS_A_STEP)?;
        let most = a.len().min(b.len());
        if a[..most] != b[..most] {
            return Ok(at + a.iter().zip(b).take_while(|(a, b)| a == b).count());
        }
        at += most;
    }
    Ok(at)
}

/// The first position of `wanted` in `text`, in linear time.
fn find<U: Unit>(text: &[U], wanted: &[U]) -> Option<usize> {
    let Some(&first) = wanted.first() else { return Some(0) };
    if wanted.len() == 1 {
        return first.position_in(text);
    }
    if text.len() < wanted.len() {
        return None;
    }
    // A naive search is fastest for most texts. Its wasted work is bounded; beyond the bound the search continues with
    // a table.
    let (mut at, mut spent) = (0, 0);
    let last = text.len() - wanted.len();
    while at <= last {
        at += first.position_in(&text[at..=last])?;
        let same = text[at..].iter().zip(wanted).take_while(|(a, b)| a == b).count();
        if same == wanted.len() {
            return Some(at);
        }
        at += 1;
        spent += same;
        if spent > 4 * at + 64 {
            return U::find(&text[at..], wanted).map(|found| at + found);
        }
    }
    None
}

/// Knuth, Morris and Pratt: the first position of a text.
fn find_by_table(
    length: usize,
    wanted_length: usize,
    text: impl Fn(usize) -> u16,
    wanted: impl Fn(usize) -> u16,
) -> Option<usize> {
    if wanted_length == 0 {
        return Some(0);
    }
    // bounded: a part
    let mut table = vec![0_u32; wanted_length];
    let mut same = 0;
    for index in 1..wanted_length {
        while same > 0 && wanted(index) != wanted(same) {
            same = table[same - 1] as usize;
        }
        same += usize::from(wanted(index) == wanted(same));
        table[index] = same as u32;
    }
    same = 0;
    for index in 0..length {
        let unit = text(index);
        while same > 0 && unit != wanted(same) {
            same = table[same - 1] as usize;
        }
        same += usize::from(unit == wanted(same));
        if same == wanted_length {
            return Some(index + 1 - same);
        }
    }
    None
}

/// Crochemore and Perrin, "Two-way string-matching" (1991): the first position of a text, in linear time and without
/// memory. Charged while it works.
fn two_way<U: Unit>(
    meter: &mut Meter,
    length: usize,
    wanted_length: usize,
    text: impl Fn(usize) -> U,
    wanted: impl Fn(usize) -> U,
) -> Result<Option<usize>> {
    let mut pace = Pace { meter, left: PART };
    let (cut, period) = {
        let up = largest_suffix(&mut pace, wanted_length, &wanted, |a, b| a < b)?;
        let down = largest_suffix(&mut pace, wanted_length, &wanted, |a, b| a > b)?;
        if up.0 > down.0 { up } else { down }
    };
    let mut is_periodic = cut + period <= wanted_length;
    for index in 0..cut {
        pace.step()?;
        is_periodic = is_periodic && wanted(index) == wanted(index + period);
        if !is_periodic {
            break;
        }
    }
    let shift = if is_periodic { period } else { cut.max(wanted_length - cut) + 1 };
    // How many units at the beginning are known to match, where the text has a period.
    let (mut at, mut known) = (0, 0);
    while at + wanted_length <= length {
        let mut right = cut.max(known);
        while right < wanted_length && wanted(right) == text(at + right) {
            pace.step()?;
            right += 1;
        }
        pace.step()?;
        if right < wanted_length {
            at += right - cut + 1;
            known = 0;
            continue;
        }
        let mut left = cut;
        while left > known && wanted(left - 1) == text(at + left - 1) {
            pace.step()?;
            left -= 1;
        }
        if left <= known {
            return Ok(Some(at));
        }
        at += shift;
        known = if is_periodic { wanted_length - period } else { 0 };
    }
    Ok(None)
}

/// Where the largest suffix of a text begins in an order of units, and its period.
fn largest_suffix<U: Unit>(
    pace: &mut Pace<'_>,
    length: usize,
    text: impl Fn(usize) -> U,
    is_before: impl Fn(U, U) -> bool,
) -> Result<(usize, usize)> {
    let (mut begin, mut other, mut same, mut period) = (0, 1, 0, 1);
    while other + same < length {
        pace.step()?;
        let (a, b) = (text(other + same), text(begin + same));
        if is_before(a, b) {
            other += same + 1;
            same = 0;
            period = other - begin;
        } else if a == b {
            same += 1;
            if same == period {
                other += period;
                same = 0;
            }
        } else {
            begin = other;
            other += 1;
            (same, period) = (0, 1);
        }
    }
    Ok((begin, period))
}

/// Charges single steps of a long loop, many at once.
struct Pace<'a> {
    meter: &'a mut Meter,
    left: usize,
}

impl Pace<'_> {
    #[inline]
    fn step(&mut self) -> Result<()> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(());
        }
        self.left = PART;
        self.meter.work(PART / SINGLE_UNITS_A_STEP)?;
        Ok(())
    }
}
