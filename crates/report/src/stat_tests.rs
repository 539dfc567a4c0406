use super::*;
use relatch_record::recording::{Cost, Environment, Origin, Process};
use relatch_record::times::Times;

/// The published figures of a 12-way kernel (`find_lock_page` and so on), as they were printed:
/// hold and wait means and maxima in ns, how often, and what share waited.
struct Published {
    name: &'static str,
    total: u64,
    contended_share: f64,
    hold_mean_ns: f64,
    hold_max_ns: u64,
    wait_mean_ns: f64,
    wait_max_ns: u64,
}

const ELAPSED_NS: u64 = 35_000_000_000;

const KERNEL: [Published; 3] = [
    Published {
        name: "find_lock_page+0x30",
        total: 50_542_055,
        contended_share: 0.131,
        hold_mean_ns: 500.7,
        hold_max_ns: 9_500,
        wait_mean_ns: 29_000.0,
        wait_max_ns: 20_000_000,
    },
    Published {
        name: "exit_mmap+0x50",
        total: 23_235,
        contended_share: 0.0,
        hold_mean_ns: 385_000.0,
        hold_max_ns: 3_177_000,
        wait_mean_ns: 0.0,
        wait_max_ns: 0,
    },
    Published {
        name: "dnotify_parent+0x70",
        total: 50_665_658,
        contended_share: 0.0082,
        hold_mean_ns: 100.0,
        hold_max_ns: 101_000,
        wait_mean_ns: 17_000.0,
        wait_max_ns: 5_670_000,
    },
];

fn figures_of(row: &Published) -> Figures {
    let contended = (row.total as f64 * row.contended_share) as u64;
    Figures {
        acquisitions: row.total,
        contended,
        wait_ns: (contended as f64 * row.wait_mean_ns) as u64,
        wait_max_ns: row.wait_max_ns,
        held: row.total,
        hold_ns: (row.total as f64 * row.hold_mean_ns) as u64,
        hold_max_ns: row.hold_max_ns,
        ..Figures::default()
    }
}

fn site(name: &str, exclusive: Figures, shared: Figures) -> Site {
    Site {
        name: name.into(),
        function: String::new(),
        file: Some("/src/cache/lru.cc".into()),
        line: Some(123),
        module: String::new(),
        exclusive,
        shared,
    }
}

fn class(name: &str, kind: Kind, sites: Vec<Site>) -> Class {
    Class {
        name: name.into(),
        kind,
        origin: Origin::Init,
        locks: 1,
        exclusive: sum_of(sites.iter().map(|site| &site.exclusive)),
        shared: sum_of(sites.iter().map(|site| &site.shared)),
        sites,
    }
}

fn recording(classes: Vec<Class>) -> Recording {
    Recording {
        environment: Environment {
            command: vec!["prog".into(), "-x".into()],
            cpus: 12,
            elapsed_ns: ELAPSED_NS,
            cpu_ns: Some(100_000_000_000),
            ..Environment::default()
        },
        processes: vec![Process { threads: 3, ..Process::default() }],
        classes,
        cost: Some(Cost { pair_ns: 21.25 }),
        unseen: vec!["locks that are no pthread locks".into()],
        ..Recording::default()
    }
}

fn lines(recording: &Recording, layout: Layout) -> Vec<String> {
    table(recording, layout).lines().map(str::to_owned).collect()
}

#[test]
fn the_published_rows_come_out_as_they_were_printed() {
    let classes = KERNEL.iter().map(|row| {
        class(row.name, Kind::Spin, vec![site(row.name, figures_of(row), Figures::default())])
    });
    let lines = lines(&recording(classes.collect()), Layout::default());
    assert_eq!(lines[0], "prog -x: 35.00 s on 12 CPUs, 1 process, 3 threads that took locks");
    let expected = [
        "MUTEXES AND SPINLOCKS HOLD        WAIT",
        "  UTIL  CON    MEAN(  MAX )   MEAN(  MAX )(% CPU)     TOTAL NOWAIT SPIN RJECT  NAME",
        "        7.0%  0.4us(3177us)   28us(  20ms)(47.4%) 101230948 93.0%  7.0%    0%  *TOTAL*",
        " 72.3% 13.1%  0.5us( 9.5us)   29us(  20ms)(45.7%)  50542055 86.9% 13.1%    0%  find_lock_page+0x30",
        " 72.3% 13.1%  0.5us( 9.5us)   29us(  20ms)(45.7%)  50542055 86.9% 13.1%    0%    find_lock_page+0x30 lru.cc:123",
        " 14.5% 0.82%  0.1us( 101us)   17us(5670us)( 1.7%)  50665658 99.2% 0.82%    0%  dnotify_parent+0x70",
        " 14.5% 0.82%  0.1us( 101us)   17us(5670us)( 1.7%)  50665658 99.2% 0.82%    0%    dnotify_parent+0x70 lru.cc:123",
        " 25.6%    0%  385us(3177us)    0us                    23235  100%    0%    0%  exit_mmap+0x50",
        " 25.6%    0%  385us(3177us)    0us                    23235  100%    0%    0%    exit_mmap+0x50 lru.cc:123",
    ];
    assert_eq!(lines[2..11], expected);
    assert_eq!(
        lines[12],
        "observing: 101230948 pairs x 21.2 ns = 2.15 s, 2.2% of the CPU time used (100.00 s)"
    );
    assert_eq!(lines[13], "not seen: locks that are no pthread locks");
    assert_eq!(lines.len(), 14);
}

fn some(acquisitions: u64, contended: u64, rejected: u64) -> Figures {
    Figures {
        acquisitions,
        contended,
        rejected,
        wait_ns: contended * 1000,
        wait_max_ns: 2000,
        held: acquisitions,
        hold_ns: acquisitions * 250,
        hold_max_ns: 4000,
        wait: Times::new(1.0, &[(100, contended)]),
        hold: Times::new(1.0, &[(90, acquisitions)]),
    }
}

#[test]
fn rejected_tries_are_contention() {
    let none = Figures::default();
    let lines = lines(
        &recording(vec![class("c", Kind::Mutex, vec![site("f+0x1", some(900, 100, 100), none)])]),
        Layout::default(),
    );
    // 1000 in all: 100 waited, 100 were rejected, 800 did neither.
    assert!(lines[4].contains("      1000 80.0% 10.0% 10.0%  *TOTAL*"), "{}", lines[4]);
    assert!(lines[4].starts_with("       20.0%"), "{}", lines[4]);
}

#[test]
fn modes_and_kinds_have_blocks_of_their_own() {
    let none = Figures::default;
    let recording = recording(vec![
        class("m", Kind::Mutex, vec![site("f+0x1", some(1, 0, 0), none())]),
        class(
            "r",
            Kind::Rwlock,
            vec![site("get+0x1", none(), some(70, 7, 0)), site("put+0x1", some(30, 3, 0), none())],
        ),
    ]);
    let text = table(&recording, Layout::default());
    let blocks: Vec<&str> = text.split("\n\n").collect();
    assert!(
        blocks[1].starts_with("MUTEXES")
            && blocks[1].contains(" m\n")
            && !blocks[1].contains("get")
    );
    assert!(blocks[2].starts_with("RWLOCK READS") && blocks[2].contains("get+0x1"));
    assert!(blocks[2].contains("BUSY PERIOD left out") && !blocks[2].contains("put"));
    assert!(blocks[3].starts_with("RWLOCK WRITES") && blocks[3].contains("put+0x1"));
    assert!(!blocks[3].contains("get"));
}

#[test]
fn sites_can_stand_alone_and_sort_by_each_cost() {
    let (a, b) = (some(10, 9, 0), some(1000, 1, 0));
    let none = Figures::default;
    let recording = recording(vec![
        class("c", Kind::Mutex, vec![site("f+0x1", a, none()), site("g+0x1", b.clone(), none())]),
        class("d", Kind::Mutex, vec![site("g+0x1", b, none())]),
    ]);
    let first = |sort| {
        let lines = lines(&recording, Layout { by: By::Site, sort, ..Layout::default() });
        (lines[5].clone(), lines.len())
    };
    assert!(first(Sort::Wait).0.ends_with("  f+0x1 lru.cc:123"));
    let (by_count, len) = first(Sort::Count);
    assert!(by_count.contains("      2000 ") && by_count.ends_with("  g+0x1 lru.cc:123"));
    assert_eq!(len, 10, "title, blank, two of header, total, two sites, blank, two closing lines");
    assert_eq!(first(Sort::Hold).0, by_count);
}

#[test]
fn names_are_cut_for_a_terminal_alone() {
    let name = "rocksdb::lru_cache::LRUCacheShard::Lookup(a very long list)+0x30";
    let recording = recording(vec![class(
        name,
        Kind::Mutex,
        vec![site("f", some(1, 0, 0), Figures::default())],
    )]);
    assert!(table(&recording, Layout::default()).contains(name));
    let narrow = table(&recording, Layout { width: Some(110), ..Layout::default() });
    let cut = narrow.lines().find(|line| line.contains('\u{2026}')).unwrap();
    assert_eq!(cut.chars().count(), 110);
    assert!(cut.ends_with("+0x30"));
}

#[test]
fn nothing_seen_is_said() {
    let text = table(&recording(Vec::new()), Layout::default());
    assert!(text.contains("nothing was acquired in this time"));
    let none = Recording { processes: Vec::new(), ..recording(Vec::new()) };
    let text = table(&none, Layout::default());
    assert!(text.contains("no pthread locks seen") && text.contains("not seen: "));
    let interim = table(&recording(Vec::new()), Layout { interim: true, ..Layout::default() });
    assert!(!interim.contains("not seen: ") && !interim.contains("observing"));
}

#[test]
fn what_was_dropped_is_said() {
    let mut recording = recording(Vec::new());
    recording.dropped[Dropped::Rows as usize] = 5;
    recording.kept[relatch_record::layout::Kept::Recursive as usize] = 2;
    let line = unseen_line(&recording);
    assert!(
        line.contains("5 acquisitions without a row") && line.contains("2 recursive"),
        "{line}"
    );
    recording.classes.push(class("c", Kind::Mutex, vec![site("f", some(1, 0, 0), Figures::NONE)]));
    recording.cost = None;
    assert!(cost_line(&recording).contains("not measured"));
}
