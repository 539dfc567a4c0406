//! Plan files: TOML, in which names stand between quotes.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::algorithm::{Algorithm, Kind};
use crate::conversion::{Conversion, ParseError};
use crate::plan::{Plan, share_line, split_share_line};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanIn {
    name: Option<String>,
    #[serde(default)]
    share: Vec<Spanned<String>>,
    #[serde(default)]
    conversion: Vec<Spanned<ConversionIn>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConversionIn {
    kind: Spanned<String>,
    select: Option<Spanned<String>>,
    algorithm: Spanned<String>,
    #[serde(default)]
    share: Vec<Spanned<String>>,
}

#[derive(Serialize)]
struct PlanOut<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    share: Vec<&'a str>,
    conversion: Vec<ConversionOut<'a>>,
}

#[derive(Serialize)]
struct ConversionOut<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    select: Option<&'a str>,
    algorithm: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    share: Vec<&'a str>,
}

/// Reads the text of a plan file; `name` is for a plan that gives itself none. An error is
/// `:LINE: what is wrong` or `: what is wrong`.
pub(crate) fn parse(text: &str, name: &str) -> Result<Plan, String> {
    let at = |offset: usize, what: String| {
        let line = 1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count();
        format!(":{line}: {what}")
    };
    let plan: PlanIn = toml::from_str(text).map_err(|error| {
        let what = error.message().replace('\n', ", ");
        match error.span() {
            Some(span) => at(span.start, what),
            None => format!(": {what}"),
        }
    })?;
    if plan.conversion.is_empty() {
        return Err(": a plan needs at least one [[conversion]]".into());
    }
    let mut share = Vec::new();
    for pattern in &plan.share {
        let line = share_line(None, pattern.get_ref());
        share.push(line.map_err(|what| at(pattern.span().start, what))?);
    }
    let mut conversions = Vec::new();
    for (position, table) in plan.conversion.iter().enumerate() {
        let (start, table) = (table.span().start, table.get_ref());
        let conversion = read_conversion(table).map_err(|(part, error)| {
            at(part.map_or(start, |part| part.span().start), error.to_string())
        })?;
        if let Some(pattern) = table.share.first()
            && !conversion.algorithm.has_shared_mode()
        {
            let what = format!("{} has no shared mode that sites could take", conversion.algorithm);
            return Err(at(pattern.span().start, what));
        }
        for pattern in &table.share {
            let line = share_line(Some(position), pattern.get_ref());
            share.push(line.map_err(|what| at(pattern.span().start, what))?);
        }
        conversions.push(conversion.to_owned());
    }
    let name = plan.name.unwrap_or_else(|| name.to_owned());
    Ok(Plan { name, conversions, share })
}

/// On error: the part it is about, if it is one.
fn read_conversion(
    table: &ConversionIn,
) -> Result<Conversion<&str>, (Option<&Spanned<String>>, ParseError<'_>)> {
    let kind = table.kind.get_ref().as_str();
    let kind = Kind::from_name(kind).ok_or((Some(&table.kind), ParseError::Kind { kind }))?;
    let algorithm = table.algorithm.get_ref().as_str();
    let algorithm = Algorithm::from_name(algorithm)
        .ok_or((Some(&table.algorithm), ParseError::Algorithm { kind, algorithm }))?;
    let selector = table.select.as_ref().map(|select| select.get_ref().as_str());
    let conversion = Conversion { kind, selector, algorithm };
    conversion.check().map_err(|error| {
        let part = match error {
            ParseError::DoesNotApply { .. } => Some(&table.algorithm),
            _ => table.select.as_ref(),
        };
        (part, error)
    })?;
    Ok(conversion)
}

/// The text of a plan file that [`parse`] reads back.
pub(crate) fn render(plan: &Plan) -> String {
    let shares = |wanted: Option<usize>| -> Vec<&str> {
        let lines = plan.share.iter().map(|line| split_share_line(line));
        lines.filter(|(position, _)| *position == wanted).map(|(_, pattern)| pattern).collect()
    };
    let conversion =
        plan.conversions.iter().enumerate().map(|(position, conversion)| ConversionOut {
            kind: conversion.kind.name(),
            select: conversion.selector.as_deref(),
            algorithm: conversion.algorithm.name(),
            share: shares(Some(position)),
        });
    let out = PlanOut { name: &plan.name, share: shares(None), conversion: conversion.collect() };
    toml::to_string(&out).expect("tables of strings and lists of strings can be written as TOML")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"
share = ["*::Get"]

[[conversion]]
kind = "mutex"
select = "*LRUCacheShard*"
algorithm = "rwsem"
share = ["*::Lookup", "#1 odd"]

[[conversion]]
kind = "rwlock"
algorithm = "qrwlock"
"##;

    #[test]
    fn a_file() {
        let plan = parse(TEXT, "shards").unwrap();
        assert_eq!(plan.name, "shards");
        let conversions: Vec<_> = plan.conversions.iter().map(|c| c.to_string()).collect();
        assert_eq!(conversions, ["mutex@*LRUCacheShard*=rwsem", "rwlock=qrwlock"]);
        assert_eq!(plan.share, ["*::Get", "#0 *::Lookup", "#0 #1 odd"]);
    }

    #[test]
    fn text_leads_back() {
        let mut plan = parse(TEXT, "a \"quoted\" name\\").unwrap();
        assert_eq!(parse(&plan.to_toml(), "other").unwrap(), plan);
        plan.share.clear();
        plan.conversions.truncate(1);
        assert_eq!(parse(&plan.to_toml(), "other").unwrap(), plan);
    }

    #[test]
    fn errors_say_the_line_and_fill_one() {
        let good = "[[conversion]]\nkind = \"spin\"\nalgorithm = \"ttas\"\n";
        assert!(parse(good, "").is_ok());
        for (from, to, line, what) in [
            ("kind = \"spin\"", "kind = \"futex\"", 2, "unknown kind of lock `futex`"),
            ("\"ttas\"", "\"mcs\"", 3, "unknown algorithm `mcs`"),
            ("\"ttas\"", "\"rwsem\"", 3, "does not fit"),
            ("\"spin\"\n", "\"spin\"\nselect = \"\"\n", 3, "is empty"),
            ("\"spin\"\n", "\"spin\"\nselekt = \"x\"\n", 3, "unknown field `selekt`"),
            ("\"ttas\"\n", "\"ttas\"\nshare = [\"x\"]\n", 4, "no shared mode"),
            ("kind = \"spin\"\n", "", 1, "missing field `kind`"),
            ("\"spin\"", "\"spin", 2, ""),
            ("\"spin\"", "7", 2, "expected a string"),
        ] {
            let bad = good.replacen(from, to, 1);
            let message = parse(&bad, "").unwrap_err();
            assert!(message.starts_with(&format!(":{line}: ")), "{bad}: {message}");
            assert!(message.contains(what), "{bad}: {message}");
            assert!(!message.contains('\n'), "{bad}: {message}");
        }
        assert_eq!(
            parse("name = \"x\"", "").unwrap_err(),
            ": a plan needs at least one [[conversion]]"
        );
        assert!(parse("nmae = \"x\"", "").unwrap_err().starts_with(":1: unknown field `nmae`"));
    }
}
