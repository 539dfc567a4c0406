//! Text between tables.

use std::fmt::Write;

/// Lines longer than this are hard to follow.
const LONGEST: usize = 100;

/// A heading.
pub fn title(text: &str) -> String {
    format!("{text}\n{}", "-".repeat(text.chars().count()))
}

/// A paragraph in lines of at most `width` characters, unless a word is longer.
pub fn paragraph(text: &str, width: usize) -> String {
    let width = width.min(LONGEST);
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let gap = match used {
            0 => "",
            _ if used + 1 + length <= width => " ",
            _ => {
                used = 0;
                "\n"
            }
        };
        let _ = write!(out, "{gap}{word}");
        used += length + usize::from(gap == " ");
    }
    out
}

/// What one would type in a shell.
pub fn command(text: &str) -> String {
    format!("  $ {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_long_as_they_may_be() {
        assert_eq!(paragraph("one two  three\nfour", 9), "one two\nthree\nfour");
        assert_eq!(paragraph("one two", 7), "one two");
        assert_eq!(paragraph("one two", 6), "one\ntwo");
        assert_eq!(paragraph("a longestword b", 4), "a\nlongestword\nb");
        assert_eq!(paragraph("", 4), "");
    }

    #[test]
    fn titles_are_underlined() {
        assert_eq!(title("1. A"), "1. A\n----");
    }
}
