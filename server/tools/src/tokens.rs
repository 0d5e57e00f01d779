//! An estimate of how many tokens a text takes, to compare lists and to keep to budgets.
//!
//! Tokenizers of models differ, and their vocabularies take megabytes. The estimate counts words, numbers and runs of signs: for lists of
//! tools in JSON and for signatures it is within a sixth of `o200k_base`.

/// Maximum length of a run of letters, digits, or signs that is one token, in characters.
const MAX_LETTERS: usize = 10;
const MAX_DIGITS: usize = 3;
const MAX_SIGNS: usize = 4;
/// Most letters beyond ASCII in a token: these have fewer tokens of their own.
const MAX_OTHER_LETTERS: usize = 2;

/// Estimates the number of tokens of a text.
#[must_use]
pub fn estimate(text: &str) -> usize {
    let (mut tokens, mut run, mut before) = (0, 0, 0);
    for letter in text.chars() {
        let max = match letter {
            ' ' => 0,
            'a'..='z' | 'A'..='Z' => MAX_LETTERS,
            '0'..='9' => MAX_DIGITS,
            _ if letter.is_ascii() => MAX_SIGNS,
            _ => MAX_OTHER_LETTERS,
        };
        if max != before || run == max {
            tokens += usize::from(max > 0);
            run = 0;
        }
        before = max;
        run += 1;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::estimate;

    /// The numbers of tokens are those of `o200k_base`.
    #[test]
    fn estimates_are_near() {
        for (text, tokens) in [
            ("", 0),
            ("hello world", 2),
            ("- list_users({status?: \"active\"|\"inactive\", limit?: number}): {id: string}[]", 26),
            (
                r#"[{"name":"get_user","description":"Get a user by id.","input_schema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}]"#,
                37,
            ),
            ("Sucht Kunden nach Name, Ort oder Umsatz und gibt die besten zurück.", 16),
        ] {
            let estimated = estimate(text);
            assert!(estimated.abs_diff(tokens) <= 2 + tokens / 5, "{estimated} for {tokens}: {text}");
        }
    }
}
