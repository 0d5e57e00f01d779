//! Boundaries of graphemes, words and sentences (ECMA-402 19).
//!
//! Words of scripts that are written without spaces would need dictionaries, which the crate does not have: see
//! [`unspaced_script`].
//!
//! charged: by the callers, by the text

use icu_properties::CodePointMapData;
use icu_properties::props::WordBreak;
use icu_segmenter::options::{SentenceBreakInvariantOptions, SentenceBreakOptions, WordBreakInvariantOptions};
use icu_segmenter::{GraphemeClusterSegmenter, SentenceSegmenter, WordSegmenter};

/// The values of the option `granularity`.
pub const GRANULARITIES: &[&str] = &["grapheme", "word", "sentence"];
const WORD: usize = 1;

/// Whether an index of [`GRANULARITIES`] stands for words.
pub fn is_word(granularity: usize) -> bool {
    granularity == WORD
}

/// Calls `push` with the end of each segment in bytes, until it fails.
pub fn ends<E>(
    text: &str,
    granularity: usize,
    locale: &str,
    mut push: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    let mut all = |start: usize, ends: &mut dyn Iterator<Item = usize>| {
        ends.filter(|&end| end > 0).try_for_each(|end| push(start + end))
    };
    match granularity {
        0 => all(0, &mut GraphemeClusterSegmenter::new().segment_str(text)),
        WORD => {
            let segmenter = WordSegmenter::new_for_non_complex_scripts(WordBreakInvariantOptions::default());
            let mut start = 0;
            for piece in Pieces(text) {
                if piece.starts_with(is_syllable) {
                    all(start, &mut std::iter::once(piece.len()))?;
                } else {
                    all(start, &mut segmenter.segment_str(piece))?;
                }
                start += piece.len();
            }
            Ok(())
        }
        _ => {
            // In Greek a semicolon is a question mark.
            let greek = locale.starts_with("el").then_some(icu_locale::langid!("el"));
            let mut options = SentenceBreakOptions::default();
            options.content_locale = greek.as_ref();
            match SentenceSegmenter::try_new(options).ok().filter(|_| greek.is_some()) {
                Some(own) => all(0, &mut own.as_borrowed().segment_str(text)),
                None => {
                    let segmenter = SentenceSegmenter::new(SentenceBreakInvariantOptions::default());
                    all(0, &mut segmenter.segment_str(text))
                }
            }
        }
    }
}

/// Whether a segment is like a word: it has a letter or a digit.
pub fn is_word_like(segment: &str) -> bool {
    let is_like = |letter| {
        matches!(class(letter), WordBreak::ALetter | WordBreak::HebrewLetter | WordBreak::Numeric | WordBreak::Katakana)
    };
    // Syllables of Hangul with a mark are not, as in ICU.
    if segment.starts_with(is_syllable) { segment.ends_with(is_syllable) } else { segment.chars().any(is_like) }
}

fn class(letter: char) -> WordBreak {
    CodePointMapData::<WordBreak>::new().get(letter)
}

/// Whether a character is a syllable of Hangul: to ICU a run of these is a word of its own.
fn is_syllable(letter: char) -> bool {
    matches!(letter, '\u{ac00}'..='\u{d7a3}')
}

/// The pieces of a text: runs of Hangul with the marks behind them, and what is between these.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        let first = text.chars().next()?;
        let end = if is_syllable(first) {
            let run = text.find(|letter| !is_syllable(letter)).unwrap_or(text.len());
            let marks = text[run..]
                .find(|letter| !matches!(class(letter), WordBreak::Extend | WordBreak::Format | WordBreak::ZWJ));
            marks.map_or(text.len(), |marks| run + marks)
        } else {
            text.find(is_syllable).unwrap_or(text.len())
        };
        let (piece, rest) = text.split_at(end);
        self.0 = rest;
        Some(piece)
    }
}

/// The script of a character, if it is written without spaces.
pub fn unspaced_script(point: u32) -> Option<&'static str> {
    Some(match point {
        0x0e00..=0x0e7f => "Thai",
        0x0e80..=0x0eff => "Lao",
        0x1000..=0x109f | 0xa9e0..=0xa9ff | 0xaa60..=0xaa7f => "Burmese",
        0x1780..=0x17ff | 0x19e0..=0x19ff => "Khmer",
        0x1950..=0x19df | 0x1a20..=0x1aaf | 0xaa80..=0xaadf | 0x11700..=0x1174f => "Tai languages",
        0x2e80..=0x2fd5
        | 0x3005
        | 0x3007
        | 0x3021..=0x3029
        | 0x3038..=0x303b
        | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff
        | 0xf900..=0xfaff
        | 0x20000..=0x3ffff => "Chinese or Japanese",
        0x3041..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9f | 0x1aff0..=0x1b16f => "Japanese",
        _ => return None,
    })
}
