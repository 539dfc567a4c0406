//! Two recordings side by side.

use std::collections::BTreeMap;

use crate::recording::{Class, Figures, Kind, Recording};

/// What a place did in either recording. Times of runs that differ in length compare by their share of
/// the observed time.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Kind of the locks.
    pub kind: Kind,
    /// Their class.
    pub class: String,
    /// The site; `None`: all of the class.
    pub site: Option<String>,
    /// Whether this is about shared acquisitions.
    pub shared: bool,
    /// In the first recording.
    pub before: Figures,
    /// In the second one.
    pub after: Figures,
}

/// Every class and, with `sites`, every site that either recording has figures of; each class in front
/// of its sites, by name.
pub fn compare(before: &Recording, after: &Recording, sites: bool) -> Vec<Change> {
    type Key = (Kind, String, bool, Option<String>);
    let mut rows: BTreeMap<Key, [Figures; 2]> = BTreeMap::new();
    for (side, recording) in [before, after].into_iter().enumerate() {
        for class in &recording.classes {
            for (site, shared, figures) in places(class, sites) {
                if !figures.is_empty() {
                    let key = (class.kind, class.name.clone(), shared, site);
                    rows.entry(key).or_default()[side].add(figures);
                }
            }
        }
    }
    rows.into_iter()
        .map(|((kind, class, shared, site), [before, after])| Change {
            kind,
            class,
            site,
            shared,
            before,
            after,
        })
        .collect()
}

fn places(class: &Class, sites: bool) -> impl Iterator<Item = (Option<String>, bool, &Figures)> {
    let sites = class.sites.iter().filter(move |_| sites).flat_map(|site| {
        let name = Some(site.name.clone());
        [(name.clone(), false, &site.exclusive), (name, true, &site.shared)]
    });
    [(None, false, &class.exclusive), (None, true, &class.shared)].into_iter().chain(sites)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Origin, Site};

    fn recording(name: &str, acquisitions: u64) -> Recording {
        let figures = Figures { acquisitions, ..Figures::default() };
        let site = Site {
            name: "f+0x10".into(),
            function: "f".into(),
            file: None,
            line: None,
            module: String::new(),
            exclusive: figures.clone(),
            shared: Figures::default(),
        };
        let class = Class {
            name: name.into(),
            kind: Kind::Mutex,
            origin: Origin::Init,
            locks: 1,
            exclusive: figures,
            shared: Figures::default(),
            sites: vec![site],
        };
        Recording { classes: vec![class], ..Recording::default() }
    }

    #[test]
    fn what_either_has_is_compared() {
        let rows = compare(&recording("a", 1), &recording("b", 2), false);
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.class.as_str(), row.before.acquisitions, row.after.acquisitions))
            .collect();
        assert_eq!(found, [("a", 1, 0), ("b", 0, 2)]);
        let rows = compare(&recording("a", 1), &recording("a", 2), true);
        let sites: Vec<_> = rows.iter().map(|row| row.site.as_deref()).collect();
        assert_eq!(sites, [None, Some("f+0x10")]);
        assert!(rows.iter().all(|row| row.before.acquisitions == 1 && row.after.acquisitions == 2));
    }
}
