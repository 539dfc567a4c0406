//! The two-letter codes of operators.

/// How many operands an operator has in an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// Written before or behind one.
    One,
    /// Written between two.
    Two,
    /// Three.
    Three,
    /// Has a grammar of its own.
    Special,
}

/// The spelling behind the word `operator`, and the number of operands.
pub(crate) fn operator(code: [u8; 2]) -> Option<(&'static [u8], Operands)> {
    use Operands::{One, Special, Three, Two};
    Some(match &code {
        b"nw" => (b" new", Special),
        b"na" => (b" new[]", Special),
        b"dl" => (b" delete", One),
        b"da" => (b" delete[]", One),
        b"aw" => (b" co_await", One),
        b"ps" => (b"+", One),
        b"ng" => (b"-", One),
        b"ad" => (b"&", One),
        b"de" => (b"*", One),
        b"co" => (b"~", One),
        b"pl" => (b"+", Two),
        b"mi" => (b"-", Two),
        b"ml" => (b"*", Two),
        b"dv" => (b"/", Two),
        b"rm" => (b"%", Two),
        b"an" => (b"&", Two),
        b"or" => (b"|", Two),
        b"eo" => (b"^", Two),
        b"aS" => (b"=", Two),
        b"pL" => (b"+=", Two),
        b"mI" => (b"-=", Two),
        b"mL" => (b"*=", Two),
        b"dV" => (b"/=", Two),
        b"rM" => (b"%=", Two),
        b"aN" => (b"&=", Two),
        b"oR" => (b"|=", Two),
        b"eO" => (b"^=", Two),
        b"ls" => (b"<<", Two),
        b"rs" => (b">>", Two),
        b"lS" => (b"<<=", Two),
        b"rS" => (b">>=", Two),
        b"eq" => (b"==", Two),
        b"ne" => (b"!=", Two),
        b"lt" => (b"<", Two),
        b"gt" => (b">", Two),
        b"le" => (b"<=", Two),
        b"ge" => (b">=", Two),
        b"ss" => (b"<=>", Two),
        b"nt" => (b"!", One),
        b"aa" => (b"&&", Two),
        b"oo" => (b"||", Two),
        b"pp" => (b"++", One),
        b"mm" => (b"--", One),
        b"cm" => (b",", Two),
        b"pm" => (b"->*", Two),
        b"pt" => (b"->", Special),
        b"cl" => (b"()", Special),
        b"ix" => (b"[]", Two),
        b"qu" => (b"?", Three),
        _ => return None,
    })
}
