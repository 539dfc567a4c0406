//! The types that have a letter of their own.

/// How a number of a builtin type is written as a template argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// With this behind it.
    Suffix(&'static [u8]),
    /// `true` or `false`.
    Bool,
    /// In square brackets behind the type in round ones.
    Float,
    /// Behind the type in round brackets.
    Cast,
}

/// Name, and how its values are written, of a type that has a letter of its own.
pub(crate) fn builtin(code: u8) -> Option<(&'static [u8], Written)> {
    use Written::{Bool, Cast, Float, Suffix};
    Some(match code {
        b'v' => (b"void", Cast),
        b'w' => (b"wchar_t", Cast),
        b'b' => (b"bool", Bool),
        b'c' => (b"char", Cast),
        b'a' => (b"signed char", Cast),
        b'h' => (b"unsigned char", Cast),
        b's' => (b"short", Cast),
        b't' => (b"unsigned short", Cast),
        b'i' => (b"int", Suffix(b"")),
        b'j' => (b"unsigned int", Suffix(b"u")),
        b'l' => (b"long", Suffix(b"l")),
        b'm' => (b"unsigned long", Suffix(b"ul")),
        b'x' => (b"long long", Suffix(b"ll")),
        b'y' => (b"unsigned long long", Suffix(b"ull")),
        b'n' => (b"__int128", Cast),
        b'o' => (b"unsigned __int128", Cast),
        b'f' => (b"float", Float),
        b'd' => (b"double", Float),
        b'e' => (b"long double", Float),
        b'g' => (b"__float128", Float),
        b'z' => (b"...", Cast),
        _ => return None,
    })
}
