//! Sites and conversions on real programs whose locks lie behind wrappers.

use std::process::Command;

use relatch_plan::glob;
use serde_json::Value;

use crate::bench::{Bench, Setup, capture};
use crate::figures::Figures;
use crate::observed::{Observed, number};

/// RocksDB's block cache with one shard, and Kyoto Cabinet's rwlock; what is not installed is left out.
///
/// # Errors
/// When a program fails.
pub fn check(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    if is_installed("db_bench") {
        rocksdb(bench, figures)?;
    } else {
        figures.note("db_bench is not installed (rocksdb-tools): not tried");
    }
    if is_installed("kccachetest") {
        kyoto_cabinet(bench, figures)?;
    } else {
        figures.note("kccachetest is not installed (kyotocabinet-utils): not tried");
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    Command::new("which").arg(program).output().is_ok_and(|output| output.status.success())
}

const SHARD: &str = "*LRUCacheShard*";

fn rocksdb(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let database = bench.path("db");
    let database = format!("--db={}", database.display());
    let size = ["--num=50000", "--cache_size=1000000", "--cache_numshardbits=0"];
    let fill = [&["db_bench", &*database, "--benchmarks=fillseq"], &size[..]].concat();
    let filled = capture(Command::new(fill[0]).args(&fill[1..]))?;
    if !filled.status.success() {
        return Err(format!("db_bench: {}", String::from_utf8_lossy(&filled.stderr)));
    }
    let read = ["--use_existing_db=1", "--benchmarks=readrandom", "--threads=4", "--reads=50000"];
    let read = [&["db_bench", &*database], &size[..], &read].concat();

    let observed = Observed::run(bench, &[], &read)?;
    let shown =
        |sites: &[String]| sites.iter().map(|site| short(site)).collect::<Vec<_>>().join(", ");
    let hot = hottest(&observed, "mutex", "exclusive", "acquisitions", 2);
    let named = |name: &str| hot.iter().any(|site| is_of_shard(site) && site.contains(name));
    let what = "db_bench: the two sites that acquire most";
    let pass = named("Lookup") && named("Release");
    figures.told(what, shown(&hot), "LRUCacheShard's Lookup and Release", pass);
    let hot = hottest(&observed, "mutex", "exclusive", "wait_ns", 2);
    let what = "db_bench: the two sites that wait longest";
    figures.told(what, shown(&hot), "of LRUCacheShard", hot.iter().all(|site| is_of_shard(site)));

    // Of every class what the selector is held against: its name, and its sites'.
    let is_selected = |class: &&Value| {
        let sites = class["sites"].as_array().into_iter().flatten();
        let names = sites.map(|site| &site["name"]).chain([&class["name"]]);
        class["kind"] == "mutex"
            && names.filter_map(Value::as_str).any(|name| glob::matches_name(SHARD, name))
    };
    let locks: u64 =
        observed.classes().filter(is_selected).map(|class| number(&class["locks"])).sum();
    let recordings = bench.directory()?;
    let conversion = format!("mutex@{SHARD}=ttas");
    let setup = Setup::convert(&[&conversion]);
    let mut command = bench.interposed(&setup, read[0].as_ref(), recordings.path());
    let output = capture(command.args(&read[1..]))?;
    let ended = String::from_utf8_lossy(&output.stdout);
    let found = ended.lines().find(|line| line.starts_with("readrandom")).unwrap_or("nothing");
    figures.told(
        "db_bench converted: every key is found",
        found_keys(found),
        "50000 of 50000 each",
        output.status.success() && found.contains("(50000 of 50000 found)"),
    );
    let converted = Observed::load(bench, recordings.path())?;
    let count = number(&converted.json["converted"]);
    let what = format!("db_bench, {conversion}: converted locks");
    figures.told(what, count, format!("{locks}, as stat counts them"), count == locks && locks > 0);
    let kept = converted.json["kept"].as_object().into_iter().flatten();
    let kept: Vec<String> = kept.map(|(why, locks)| format!("{locks} {why}")).collect();
    let not_selected = number(&converted.json["kept"]["not selected"]);
    figures.told("the same: kept locks", kept.join(", "), "some not selected", not_selected > 0);
    Ok(())
}

fn is_of_shard(function: &str) -> bool {
    function.contains("LRUCacheShard::")
}

fn found_keys(line: &str) -> String {
    line.split(['(', ')']).nth(1).unwrap_or(line).to_owned()
}

fn kyoto_cabinet(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let command = ["kccachetest", "order", "-th", "4", "-rnd", "-etc", "20000"];
    let observed = Observed::run(bench, &[], &command)?;
    let hottest = hottest(&observed, "rwlock", "shared", "acquisitions", 1);
    let site = hottest.first().cloned().unwrap_or_default();
    let pass = !site.is_empty() && !site.contains("RWLock::") && site.contains("CacheDB");
    figures.told(
        "kccachetest: the hottest reading site",
        short(&site),
        "a function of CacheDB, above RWLock::lock_reader",
        pass,
    );
    Ok(())
}

/// Functions with the most of a figure, the most first.
fn hottest(observed: &Observed, kind: &str, mode: &str, field: &str, count: usize) -> Vec<String> {
    let mut functions = std::collections::BTreeMap::<String, u64>::new();
    for class in observed.classes().filter(|class| class["kind"] == kind) {
        for site in class["sites"].as_array().into_iter().flatten() {
            let function = site["function"].as_str().unwrap_or("").to_owned();
            *functions.entry(function).or_default() += number(&site[mode][field]);
        }
    }
    let mut functions: Vec<(String, u64)> = functions.into_iter().collect();
    functions.sort_by_key(|(_, figure)| std::cmp::Reverse(*figure));
    functions.into_iter().take(count).map(|(function, _)| function).collect()
}

/// The last two parts of a qualified name.
fn short(function: &str) -> String {
    let name = function.split('(').next().unwrap_or(function);
    let parts: Vec<&str> = name.rsplitn(3, "::").collect();
    let parts: Vec<&str> = parts.into_iter().take(2).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("::")
}
