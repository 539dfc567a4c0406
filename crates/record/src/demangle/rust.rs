//! Rust names in their legacy form: a C++ name whose last part is a hash.
//!
//! Source: `rustc_symbol_mangling::legacy`.

use super::Unsupported;
use super::output::Output;

/// `17h` and sixteen hexadecimal digits.
const HASH: usize = 19;

/// Whether what stands behind `_Z` was written by rustc.
pub(crate) fn is_legacy(text: &[u8]) -> bool {
    let Some(parts) = text.strip_prefix(b"N").and_then(|rest| rest.strip_suffix(b"E")) else {
        return false;
    };
    let Some(at) = parts.len().checked_sub(HASH) else { return false };
    at > 0 && parts[at..].starts_with(b"17h") && parts[at + 3..].iter().all(u8::is_ascii_hexdigit)
}

/// Prints the path behind `_Z`, without the hash.
pub(crate) fn legacy_path(text: &[u8], output: &mut Output<'_>) -> Result<(), Unsupported> {
    let end = text.len().checked_sub(HASH + 1).ok_or(Unsupported)?;
    let mut rest = text.get(1..end).ok_or(Unsupported)?;
    let mut separator: &[u8] = b"";
    while !rest.is_empty() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = core::str::from_utf8(&rest[..digits]).map_err(|_| Unsupported)?;
        let length: usize = number.parse().map_err(|_| Unsupported)?;
        let part = rest[digits..].get(..length).ok_or(Unsupported)?;
        rest = &rest[digits + length..];
        output.push(separator)?;
        legacy_part(part, output)?;
        separator = b"::";
    }
    Ok(())
}

fn legacy_part(part: &[u8], output: &mut Output<'_>) -> Result<(), Unsupported> {
    // A part must not begin with an escape; the underscore is there to avoid that.
    let mut rest = if part.starts_with(b"_$") { &part[1..] } else { part };
    loop {
        let plain = rest.iter().take_while(|&&byte| byte != b'$' && byte != b'.').count();
        output.push(&rest[..plain])?;
        rest = &rest[plain..];
        if let Some(behind) = rest.strip_prefix(b"..") {
            output.push(b"::")?;
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix(b".") {
            output.push(b".")?;
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix(b"$") {
            let end = behind.iter().position(|&byte| byte == b'$').ok_or(Unsupported)?;
            escaped(&behind[..end], output)?;
            rest = &behind[end + 1..];
        } else {
            return Ok(());
        }
    }
}

/// What stands between two `$`.
fn escaped(code: &[u8], output: &mut Output<'_>) -> Result<(), Unsupported> {
    let text: &[u8] = match code {
        b"SP" => b"@",
        b"BP" => b"*",
        b"RF" => b"&",
        b"LT" => b"<",
        b"GT" => b">",
        b"LP" => b"(",
        b"RP" => b")",
        b"C" => b",",
        [b'u', digits @ ..] => {
            let digits = core::str::from_utf8(digits).map_err(|_| Unsupported)?;
            let number = u32::from_str_radix(digits, 16).map_err(|_| Unsupported)?;
            let character = char::from_u32(number).filter(|c| !c.is_control());
            let mut room = [0; 4];
            let encoded = character.ok_or(Unsupported)?.encode_utf8(&mut room);
            return output.push(encoded.as_bytes());
        }
        _ => return Err(Unsupported),
    };
    output.push(text)
}
