//! Secrets in a text that comes in pieces: what may be the beginning of one is held back until it is known.

use super::Redactor;

/// A text that comes in pieces, of which each leaves as soon as it cannot be a part of a secret.
#[derive(Debug, Default)]
pub struct StreamRedactor {
    held: String,
}

impl StreamRedactor {
    /// Adds a piece. Returns what can leave now.
    pub fn push(&mut self, redactor: &Redactor, piece: &str) -> String {
        self.held.push_str(piece);
        let open = redactor.open_from(&self.held);
        let rest = self.held.split_off(open);
        let text = std::mem::replace(&mut self.held, rest);
        redactor.redact_text(&text).into_owned()
    }

    /// Ends the text. Returns the rest of it.
    pub fn finish(&mut self, redactor: &Redactor) -> String {
        redactor.redact_text(&std::mem::take(&mut self.held)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    const SECRETS: [&str; 3] = ["abcabd", "s3cret \"Välue\"/with+more", "late-Zq3/7+x&9Kd_5w"];

    fn streamed(redactor: &Redactor, text: &str, sizes: impl Iterator<Item = usize>) -> String {
        let (mut stream, mut out, mut rest) = (StreamRedactor::default(), String::new(), text);
        for size in sizes {
            let (piece, more) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
            out.push_str(&stream.push(redactor, piece));
            rest = more;
            if rest.is_empty() {
                break;
            }
        }
        out + &stream.finish(redactor)
    }

    /// Returns the spellings of a secret, with other data before it.
    fn spellings(secret: &str) -> Vec<String> {
        let json = serde_json::Value::from(secret).to_string();
        let escaped: String = secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let percent = percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string();
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let spaced: String = secret.bytes().map(|byte| format!("0x{byte:02X}, ")).collect();
        let mut all = vec![secret.to_owned(), json, escaped, percent, hex, spaced];
        for before in ["", "a", "ab"] {
            all.push(STANDARD.encode(format!("{before}{secret}!")));
            all.push(URL_SAFE_NO_PAD.encode(format!("{before}{secret}")));
        }
        all
    }

    #[test]
    fn a_secret_is_found_wherever_its_text_is_split() {
        let redactor = Redactor::new(SECRETS);
        for secret in SECRETS {
            for spelling in spellings(secret) {
                let text = format!("The key is {spelling}, and abcab is none. abc");
                let whole = redactor.redact_text(&text).into_owned();
                assert!(whole.contains("[secret]"), "{text}");
                for size in [1, 7] {
                    assert_eq!(streamed(&redactor, &text, std::iter::repeat(size)), whole, "{size}: {text}");
                }
                for at in (0..text.len()).step_by(3) {
                    assert_eq!(streamed(&redactor, &text, [at, text.len()].into_iter()), whole, "{at}: {text}");
                }
            }
        }
    }

    #[test]
    fn other_text_leaves_soon() {
        let redactor = Redactor::new(SECRETS);
        let mut stream = StreamRedactor::default();
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(20);
        let (mut left, mut late) = (0, 0);
        for (at, piece) in text
            .split_inclusive(' ')
            .scan(0, |at, piece| Some((*at + piece.len(), piece)).inspect(|(end, _)| *at = *end))
        {
            left += stream.push(&redactor, piece).len();
            late = late.max(at - left);
        }
        assert!(late < 48, "{late} bytes were held back");
        assert_eq!(StreamRedactor::default().push(&Redactor::default(), "all at once"), "all at once");
    }
}
