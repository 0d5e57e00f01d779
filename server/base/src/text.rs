//! Texts of others: cut where they are long, and names that are near to what was meant.

/// The beginning of `text`, at most `most` bytes.
#[must_use]
pub fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The names nearest to `name` by edit distance, the nearest first, at most `most`; none that is
/// too far to be meant. A name of more than 64 bytes is like no other, and no more than 500 are compared
/// letter by letter.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    if name.len() > LONGEST_COMPARED {
        return Vec::new();
    }
    let wanted = name.to_lowercase();
    let letters = Letters::of(own(&wanted));
    let mut alike: Vec<(f64, String, &str)> = known
        .take(MOST_KNOWN)
        .filter(|candidate| candidate.len() <= 2 * LONGEST_COMPARED)
        .map(|candidate| (candidate.to_lowercase(), candidate))
        .map(|(small, candidate)| (letters.likeness(&Letters::of(own(&small))), small, candidate))
        .filter(|(likeness, ..)| *likeness >= 0.35)
        .collect();
    if alike.len() > MOST_COMPARED {
        alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(b.2)));
        alike.truncate(MOST_COMPARED);
    }
    let mut found: Vec<(f64, &str)> = alike
        .into_iter()
        .map(|(_, small, candidate)| (likeness(&wanted, &small), candidate))
        .filter(|(likeness, _)| *likeness >= 0.55)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// Longest name that is compared with others, in bytes.
const LONGEST_COMPARED: usize = 64;
/// Names that are looked at.
const MOST_KNOWN: usize = 20_000;
/// Names that are compared letter by letter: those that have about the same letters.
const MOST_COMPARED: usize = 500;

/// A name without its app.
fn own(name: &str) -> &str {
    name.split_once([':', '.']).map_or(name, |(_, own)| own)
}

/// How many letters of each kind a text has, kinds of some letters taken together.
struct Letters([u16; 64]);

impl Letters {
    fn of(text: &str) -> Self {
        let mut counts = [0; 64];
        for c in text.chars() {
            counts[c as usize % 64] += 1;
        }
        Self(counts)
    }

    /// How alike two texts can be at most, in whatever order their letters are. The app counts for three
    /// tenths of the 0.55 that are asked for, so own names have to be alike by 0.35 at least.
    fn likeness(&self, other: &Self) -> f64 {
        let (mut missing, mut more, mut own, mut others) = (0, 0, 0, 0);
        for (a, b) in self.0.iter().zip(&other.0) {
            (missing, more) = (missing + a.saturating_sub(*b), more + b.saturating_sub(*a));
            (own, others) = (own + a, others + b);
        }
        1.0 - f64::from(missing.max(more)) / f64::from(own.max(others).max(1))
    }
}

/// How alike two names are: the own part counts more than the app, which many share.
fn likeness(wanted: &str, candidate: &str) -> f64 {
    let split = |name: &str| name.split_once([':', '.']).map(|(app, own)| (app.to_owned(), own.to_owned()));
    let (Some((wanted_app, wanted_own)), Some((app, own))) = (split(wanted), split(candidate)) else {
        let own = candidate.split_once(':').map_or(candidate, |(_, own)| own);
        return strsim::normalized_damerau_levenshtein(wanted, own);
    };
    0.3 * strsim::normalized_damerau_levenshtein(&wanted_app, &app)
        + 0.7 * strsim::normalized_damerau_levenshtein(&wanted_own, &own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_among_many() {
        let names: Vec<String> =
            (0..5_000).map(|at| format!("app{at}:tool{at}")).chain(["users:list".into()]).collect();
        let near = |name: &str| nearest(name, names.iter().map(String::as_str), 1);
        assert_eq!(near("user:lsit"), ["users:list"]);
        assert_eq!(near(&"x".repeat(1_000_000)), [""; 0]);
        let long = "l".repeat(1_000_000);
        assert_eq!(nearest("lll", [long.as_str()].into_iter(), 1), [""; 0]);
    }
}
