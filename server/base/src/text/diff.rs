//! The difference between two texts, line by line, as `diff -u` writes it.

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;
/// Maximum number of pairs of lines that are compared. Beyond it, all lines between the first and the last change count as
/// changed.
const MAX_PAIRS: usize = 4_000_000;

/// How a line differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Same,
    Removed,
    Added,
}

/// Returns the lines of a unified diff, without the lines that name files; none if the texts are the same.
#[must_use]
pub fn unified(old: &[String], new: &[String]) -> Vec<String> {
    let script = script(old, new);
    let (mut out, mut at) = (Vec::new(), 0);
    let is_change = |(change, _): &(Change, &str)| *change != Change::Same;
    // Positions in both texts, of the line at `at`.
    let (mut old_line, mut new_line) = (1, 1);
    while let Some(first) = script[at..].iter().position(is_change).map(|offset| at + offset) {
        let start = first.saturating_sub(CONTEXT).max(at);
        let skipped = start - at;
        (old_line, new_line) = (old_line + skipped, new_line + skipped);
        let mut end = first;
        // The hunk goes on while the next change is near.
        while let Some(next) = script[end..].iter().take(2 * CONTEXT + 1).position(is_change) {
            end += next + 1;
        }
        end = (end + CONTEXT).min(script.len());
        let hunk = &script[start..end];
        let count = |without: Change| hunk.iter().filter(|(change, _)| *change != without).count();
        let (removed, added) = (count(Change::Added), count(Change::Removed));
        let position = |line: usize, count: usize| if count == 0 { line - 1 } else { line };
        out.push(format!("@@ -{},{removed} +{},{added} @@", position(old_line, removed), position(new_line, added)));
        out.extend(hunk.iter().map(|(change, line)| match change {
            Change::Same => format!(" {line}"),
            Change::Removed => format!("-{line}"),
            Change::Added => format!("+{line}"),
        }));
        (old_line, new_line, at) = (old_line + removed, new_line + added, end);
    }
    out
}

/// Returns all lines of both texts, those they share once.
fn script<'a>(old: &'a [String], new: &'a [String]) -> Vec<(Change, &'a str)> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);
    let same = |line: &'a String| (Change::Same, line.as_str());
    let mut out: Vec<(Change, &str)> = old[..start].iter().map(same).collect();
    if a.len().saturating_mul(b.len()) > MAX_PAIRS {
        out.extend(a.iter().map(|line| (Change::Removed, line.as_str())));
        out.extend(b.iter().map(|line| (Change::Added, line.as_str())));
    } else {
        // The length of the longest common subsequence of what follows each pair of positions.
        let width = b.len() + 1;
        let mut longest = vec![0_u32; (a.len() + 1) * width];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                longest[i * width + j] = if a[i] == b[j] {
                    longest[(i + 1) * width + j + 1] + 1
                } else {
                    longest[(i + 1) * width + j].max(longest[i * width + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            if i < a.len() && j < b.len() && a[i] == b[j] {
                out.push(same(&a[i]));
                (i, j) = (i + 1, j + 1);
            } else if i < a.len() && (j == b.len() || longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
                out.push((Change::Removed, &a[i]));
                i += 1;
            } else {
                out.push((Change::Added, &b[j]));
                j += 1;
            }
        }
    }
    out.extend(old_rest[old_rest.len() - end..].iter().map(same));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split_terminator('\n').map(str::to_owned).collect()
    }

    #[test]
    fn hunks_are_those_of_diff() {
        // The expectations are the output of GNU diff -U3.
        for (old, new, expected) in [
            ("a\nb\n", "a\nb\n", ""),
            ("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
            ("a\n", "", "@@ -1,1 +0,0 @@\n-a\n"),
            ("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n6\n", "@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+x\n 6\n"),
            (
                "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n",
                "0\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n",
                "@@ -1,4 +1,4 @@\n-1\n+0\n 2\n 3\n 4\n@@ -9,4 +9,3 @@\n 9\n 10\n 11\n-12\n",
            ),
        ] {
            assert_eq!(unified(&lines(old), &lines(new)), lines(expected), "{old:?} {new:?}");
        }
        // The two changes are near, so they are one hunk.
        let near = unified(&lines("a\n1\n2\n3\n4\n5\n6\nb\n"), &lines("x\n1\n2\n3\n4\n5\n6\ny\n"));
        assert_eq!(near.iter().filter(|line| line.starts_with("@@")).count(), 1);
    }
}
