//! The tokens of Rust and Python sources, for fingerprints: what decides what a program does, without comments and layout.
//!
//! Whitespace between tokens does not count, except for Python's lines and indentation. A comma that only closes a list does not
//! count, either, nor do unit tests in Rust (`#[cfg(test)] mod name { ... }`). A literal is one token, with its quotation marks.
//!
//! Paths count, also in `use`. Many modules have names in common (`Params`, `State`, `MinRtt`), so that a path decides what runs:
//! another one may mean something else, even if all files have the same contents as before.

/// Begins and ends a block of Python, and ends a line.
const BLOCK: [&str; 3] = ["\t", "\r", "\n"];

/// The tokens of a Rust source.
pub(crate) fn rust(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else {
            let length = rust_literal(rest).unwrap_or_else(|| word_or_operator(rest, "+-*/%^!&|=<>.:@"));
            tokens.push(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    without_closing_commas(&without_tests(&tokens))
}

/// The tokens of a Python source, as of version 3.11: a string inside of an f-string has other quotation marks.
pub(crate) fn python(text: &str) -> Vec<&str> {
    let [begin, end, line] = BLOCK;
    let mut tokens = Vec::new();
    let mut indents = vec![0];
    let mut open = 0_usize; // brackets: inside of them, lines and indentation mean nothing
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_first = open == 0 && tokens.last().is_none_or(|token| *token == line);
        let length = if first == '\n' {
            if open == 0 && !is_first {
                tokens.push(line);
            }
            1
        } else if first.is_whitespace() {
            first.len_utf8()
        } else if first == '#' {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("\\\n") {
            2
        } else {
            if is_first {
                let before = &text[..text.len() - rest.len()];
                let indent = before.len() - before.rfind('\n').map_or(0, |place| place + 1);
                while indents.last().is_some_and(|last| indent < *last) {
                    indents.pop();
                    tokens.push(end);
                }
                if indents.last().is_some_and(|last| indent > *last) {
                    indents.push(indent);
                    tokens.push(begin);
                }
            }
            match first {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' => open = open.saturating_sub(1),
                _ => {}
            }
            let length = python_string(rest).unwrap_or_else(|| word_or_operator(rest, "+-*/%^~&|=<>!@"));
            tokens.push(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    without_closing_commas(&tokens)
}

/// The length of a comment in Rust, in which others may be.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut place) = (0, 0);
    while place < text.len() {
        let rest = &text.as_bytes()[place..];
        if rest.starts_with(b"/*") {
            (depth, place) = (depth + 1, place + 2);
        } else if rest.starts_with(b"*/") {
            (depth, place) = (depth - 1, place + 2);
        } else {
            place += 1;
        }
        if depth == 0 {
            return place;
        }
    }
    text.len()
}

/// The length of the string, character or lifetime that the text begins with.
fn rust_literal(text: &str) -> Option<usize> {
    let letters = text.len() - text.trim_start_matches(['b', 'c', 'r']).len();
    let (prefix, quoted) = text.split_at(letters);
    if !["", "b", "c", "r", "br", "cr"].contains(&prefix) {
        return None;
    }
    if prefix.ends_with('r') {
        let hashes = quoted.len() - quoted.trim_start_matches('#').len();
        let inside = quoted[hashes..].strip_prefix('"')?; // else a raw identifier, or a word
        let closing = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&closing).map_or(inside.len(), |end| end + closing.len());
        return Some(letters + hashes + 1 + length);
    }
    if quoted.starts_with('"') {
        return Some(letters + until_quote(quoted, "\""));
    }
    let inside = quoted.strip_prefix('\'').filter(|_| prefix != "c")?;
    let mut characters = inside.chars();
    let first = characters.next()?;
    if first == '\\' || characters.next() == Some('\'') {
        return Some(letters + until_quote(quoted, "'"));
    }
    // A lifetime or a label.
    Some(letters + 1 + word(inside))
}

/// The length of the string that the text begins with.
fn python_string(text: &str) -> Option<usize> {
    let letters = text.len() - text.trim_start_matches(|letter: char| "bfruBFRU".contains(letter)).len();
    let quoted = &text[letters..];
    let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| quoted.starts_with(quotes))?;
    (letters <= 2).then(|| letters + until_quote(quoted, quotes))
}

/// The length of a literal that begins and ends with these quotation marks. Also in Python's raw strings, none of them ends a
/// string behind a backslash.
fn until_quote(text: &str, quotes: &str) -> usize {
    let mut place = quotes.len();
    while place < text.len() && !text.as_bytes()[place..].starts_with(quotes.as_bytes()) {
        let is_escape = text.as_bytes()[place] == b'\\';
        let skipped = text[place..].chars().take(1 + usize::from(is_escape)).map(char::len_utf8);
        place += skipped.sum::<usize>();
    }
    text.len().min(place + quotes.len())
}

/// The length of a word, a number's part, an operator of some of these characters, or any other character.
fn word_or_operator(text: &str, operators: &str) -> usize {
    let operator = text.len() - text.trim_start_matches(|letter| operators.contains(letter)).len();
    match (word(text), operator) {
        (0, 0) => text.chars().next().map_or(0, char::len_utf8),
        (word, operator) => word.max(operator),
    }
}

/// The length of the letters and digits that a text begins with.
fn word(text: &str) -> usize {
    text.len() - text.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_').len()
}

/// Without the modules that exist only in tests.
fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    const ATTRIBUTE: [&str; 8] = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut rest = tokens;
    while let [first, others @ ..] = rest {
        // Its name is in between.
        if rest.starts_with(&ATTRIBUTE) && rest.get(ATTRIBUTE.len() + 1) == Some(&"{") {
            let mut depth = 0_usize;
            let body = rest.iter().skip(ATTRIBUTE.len() + 1).position(|token| {
                depth = depth + usize::from(*token == "{") - usize::from(*token == "}");
                depth == 0
            });
            rest = &rest[body.map_or(rest.len(), |length| ATTRIBUTE.len() + 1 + length + 1)..];
        } else {
            kept.push(*first);
            rest = others;
        }
    }
    kept
}

/// Without a comma before the end of a list. `(a,)` keeps its comma, as it is not `(a)`.
fn without_closing_commas<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut kept: Vec<&str> = Vec::with_capacity(tokens.len());
    let mut commas = vec![0]; // in each open bracket
    for token in tokens {
        match *token {
            "(" | "[" | "{" => commas.push(0),
            ")" | "]" | "}" => {
                let own = commas.pop().unwrap_or(0);
                if kept.last() == Some(&",") && (own > 1 || *token != ")") {
                    kept.pop();
                }
            }
            "," => {
                if let Some(own) = commas.last_mut() {
                    *own += 1;
                }
            }
            _ => {}
        }
        kept.push(token);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_comments_and_layout_are_ignored() {
        let tokens = ["fn", "f", "(", "a", ":", "u8", ")", "->", "u8", "{", "a", "}"];
        assert_eq!(rust("fn f(a: u8) -> u8 { a }"), tokens);
        assert_eq!(
            rust("/// Doc.\nfn f(\n    a: u8 /* in /* nested */ */\n) -> u8 { //! a }\n    a\n}\n"),
            tokens
        );
        assert_eq!(rust("/* never closed /* */"), [""; 0]);
    }

    #[test]
    fn comment_signs_in_strings_are_text() {
        assert_eq!(rust(r#"f("a // b", "/* c")"#), ["f", "(", r#""a // b""#, ",", r#""/* c""#, ")"]);
        assert_eq!(
            rust(r#"["\\", "\"//", b"//"]"#),
            ["[", r#""\\""#, ",", r#""\"//""#, ",", r#"b"//""#, "]"]
        );
    }

    #[test]
    fn raw_strings_match_hash_count() {
        assert_eq!(rust(r###"r#"a " // \"# b"###), [r###"r#"a " // \"#"###, "b"]);
        assert_eq!(rust(r###"br##"a"# //"##;"###), [r###"br##"a"# //"##"###, ";"]);
        assert_eq!(rust(r#"r"\" c"x" // d"#), [r#"r"\""#, r#"c"x""#]);
        assert_eq!(rust("r#type br"), ["r", "#", "type", "br"]);
    }

    #[test]
    fn characters_are_no_lifetimes() {
        assert_eq!(
            rust("'\"' '\\'' '/' b'\\\\' '\\u{2f}' 'é' // '"),
            ["'\"'", "'\\''", "'/'", "b'\\\\'", "'\\u{2f}'", "'é'"]
        );
        assert_eq!(rust("<'a, 'static> 'x: b"), ["<", "'a", ",", "'static", ">", "'x", ":", "b"]);
        assert_eq!(rust("f::<'_>('b')//c"), ["f", "::<", "'_", ">", "(", "'b'", ")"]);
    }

    #[test]
    fn spaces_in_operators_and_literals_count() {
        assert_ne!(rust("a && b"), rust("a & &b"));
        assert_ne!(rust("\"a  b\""), rust("\"a b\""));
        assert_ne!(rust("ab"), rust("a b"));
    }

    #[test]
    fn closing_commas_do_not_count() {
        assert_eq!(rust("f(a, b,); [a,]; S { a, }"), rust("f(a, b); [a]; S { a }"));
        assert_ne!(rust("(a,)"), rust("(a)"));
    }

    #[test]
    fn only_unit_tests_are_ignored() {
        assert_eq!(rust("fn f() {} #[cfg(test)] mod tests { fn g() { \"}\" } }"), rust("fn f() {}"));
        assert_ne!(rust("#[cfg(test)] mod tests; fn f() {}"), rust("fn f() {}"));
        assert_ne!(rust("#[cfg(unix)] mod m { fn g() {} }"), rust(""));
        assert_ne!(rust("use a::X;"), rust("use b::X;"));
    }

    #[test]
    fn python_comments_and_layout_are_ignored() {
        let tokens = [
            "def", "f", "(", "a", ",", "b", ")", ":", "\n", "\t", "return", "a", "**", "b", "\n", "\r", "x",
            "=", "1",
        ];
        assert_eq!(python("def f(a, b):\n    return a ** b\nx = 1"), tokens);
        let other = "# what\ndef f(\n  a,  # one\n  b,\n):\n\n# why\n  return a \\\n**b  # sum\n\n\nx = 1";
        assert_eq!(python(other), tokens);
    }

    #[test]
    fn indentation_of_python_counts() {
        assert_ne!(python("if a:\n    b\n    c\n"), python("if a:\n    b\nc\n"));
        assert_ne!(python("if a:\n  if b:\n    c\n  d\n"), python("if a:\n  if b:\n    c\n    d\n"));
        assert_ne!(python("a\n(b)"), python("a(b)"));
    }

    #[test]
    fn strings_of_python_are_whole() {
        let text = "f'''a # ' \" \n  b''' \"\"\"c \\\"\"\" #\"\"\" '\\'#' r\"\\\"#\" \"#\" rb'#' # end";
        let tokens =
            ["f'''a # ' \" \n  b'''", "\"\"\"c \\\"\"\" #\"\"\"", "'\\'#'", "r\"\\\"#\"", "\"#\"", "rb'#'"];
        assert_eq!(python(text), tokens);
        assert_eq!(python("'' # a"), ["''"]);
        assert_ne!(python("'''a\n  b'''"), python("'''a\nb'''"));
    }
}
