//! `relatch demo`: the whole way, from a program to a verdict, on a program that comes with relatch.
//!
//! Everything is as with any other program: what the text names was found in the recording, and what it
//! concludes stands in the outcome.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use relatch_plan::{Algorithm, Kind, Plan};
use relatch_record::recording::{self, Class, Cost, Figures, Recording, Site};
use relatch_stats::verdict::Verdict;

use crate::observe::Observation;
use crate::outcome::{ArmOutcome, Ended, Outcome};
use crate::settings::{Event, Experiment};
use crate::{Interposition, Role, arms, interrupt, pair_cost};

/// What the program and its source are called where they are unpacked.
const PROGRAM: &str = "sample";
const SOURCE: &str = "cache.c";
/// As it is started, from the directory where it lies.
const COMMAND: &str = "./sample";
/// The function of the sample whose section writes nothing: it may be taken shared.
const READER: &str = "cache_get";
/// Rounds, if nobody says otherwise.
pub const ROUNDS: usize = 10;
/// On a machine that is busy otherwise there are fewer rounds: a demo has a minute.
const MOST: Duration = Duration::from_secs(40);

/// What the demo is shown with.
pub struct Demo<'a> {
    /// The sample program.
    pub program: &'a [u8],
    /// Its source.
    pub source: &'a [u8],
    /// The unpacked preload library.
    pub library: PathBuf,
    /// Where program and source are to stay; else they go when the demo ends.
    pub keep: Option<PathBuf>,
    /// Rounds in which other locks are tried.
    pub rounds: usize,
}

/// What there is to be shown next.
pub enum Scene<'a> {
    /// The title of a step.
    Step(&'a str),
    /// A paragraph.
    Text(String),
    /// What a user would type.
    Command(String),
    /// What was observed.
    Recording(&'a Recording),
    /// What goes on during the rounds.
    Event(Event<'a>),
    /// What the rounds showed.
    Outcome(&'a Outcome),
}

impl Demo<'_> {
    /// Unpacks the sample, observes it, tries other locks on it and draws the conclusion. The current
    /// directory becomes that of the sample, so that commands read as typed there.
    ///
    /// # Errors
    /// One line when the sample cannot be unpacked or run.
    pub fn run(&self, show: &mut dyn FnMut(Scene)) -> Result<Ended, String> {
        let (directory, _temporary) = self.unpack()?;
        std::env::set_current_dir(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;

        show(Scene::Step("1. The program"));
        show(Scene::Text(format!(
            "A small cache in C ({SOURCE}), shared by 4 threads that look keys up and now and then store \
             one. One pthread_mutex_t protects it. It checks itself: a lock that lets two threads in \
             would be found out. Nobody compiled it for relatch."
        )));

        show(Scene::Step("2. Which lock is waited for, and where?"));
        show(Scene::Command(format!("relatch stat -- {COMMAND}")));
        let recording = self.observe()?;
        show(Scene::Recording(&recording));
        let hottest = Hottest::of(&recording)
            .ok_or("no lock of the sample was seen; is LD_PRELOAD forbidden here?")?;
        show(Scene::Text(hottest.sentences(&recording)));

        show(Scene::Step("3. Would another lock be better?"));
        let plans = hottest.plans()?;
        show(Scene::Text(format!(
            "{} variants of the same program file, each once per round, {} rounds at most, in random \
             order: bare; interposed but unchanged (same), twice, to see how far apart equal things lie \
             here; observed as in step 2 (recorded); and with another lock in the place of that one, {} \
             ways. In the last one {READER}, which only reads (see {SOURCE}), takes it shared.",
            plans.len() + 4,
            self.rounds,
            plans.len(),
        )));
        let selected: String =
            plans.iter().map(|plan| arguments(&plan.name, &plan.share)).collect();
        show(Scene::Command(format!(
            "relatch try -n {} --max-time {} --recorded{selected} -- {COMMAND}",
            self.rounds,
            MOST.as_secs(),
        )));
        // Not before: in step 2 Ctrl-C is for the sample alone.
        interrupt::listen().map_err(|error| format!("cannot catch Ctrl-C: {error}"))?;
        let outcome = self.experiment(&plans).run(&mut |event| show(Scene::Event(event)))?;
        show(Scene::Outcome(&outcome));

        show(Scene::Step("4. What that says"));
        show(Scene::Text(conclusion(&outcome)));
        show(Scene::Step("5. What next"));
        self.next(&outcome, &hottest, &directory, show);
        Ok(outcome.ended)
    }

    /// Writes program and source; the directory, and what removes it in the end.
    fn unpack(&self) -> Result<(PathBuf, Option<tempfile::TempDir>), String> {
        let unwritable = |path: &Path, error| format!("{}: {error}", path.display());
        let temporary = match &self.keep {
            Some(_) => None,
            None => Some(
                tempfile::Builder::new()
                    .prefix("relatch-demo-")
                    .tempdir()
                    .map_err(|error| unwritable(&std::env::temp_dir(), error))?,
            ),
        };
        let wanted = match (&self.keep, &temporary) {
            (Some(keep), _) => keep.clone(),
            (None, Some(temporary)) => temporary.path().to_owned(),
            (None, None) => unreachable!("one of them was made above"),
        };
        fs::create_dir_all(&wanted).map_err(|error| unwritable(&wanted, error))?;
        let directory = wanted.canonicalize().map_err(|error| unwritable(&wanted, error))?;
        for (name, content, mode) in [(PROGRAM, self.program, 0o755), (SOURCE, self.source, 0o644)]
        {
            let path = directory.join(name);
            fs::write(&path, content)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
                .map_err(|error| unwritable(&path, error))?;
        }
        Ok((directory, temporary))
    }

    fn observe(&self) -> Result<Recording, String> {
        let observation = Observation {
            command: vec![COMMAND.into()],
            interposition: Interposition::new(self.library.clone()),
            by_lock: false,
            live: None,
            delay: Default::default(),
            duration: None,
            every: None,
        };
        let observed = observation.run(&mut |_| {}).map_err(|error| error.to_string())?;
        if !observed.status.success() {
            return Err(format!("the sample ended with {}", observed.status));
        }
        let mut recording = observed.recording;
        let this = std::env::current_exe().ok();
        let pair_ns = this.and_then(|relatch| pair_cost::added(&relatch, &self.library));
        recording.cost = pair_ns.map(|pair_ns| Cost { pair_ns });
        Ok(recording)
    }

    fn experiment(&self, plans: &[Plan]) -> Experiment {
        let interposition = Interposition::new(self.library.clone());
        let arms = arms(&interposition, plans, true);
        let mut experiment = Experiment::new(vec![COMMAND.into()], arms);
        experiment.rounds = Some(self.rounds);
        experiment.max_time = Some(MOST);
        experiment
    }

    fn next(
        &self,
        outcome: &Outcome,
        hottest: &Hottest,
        directory: &Path,
        show: &mut dyn FnMut(Scene),
    ) {
        let conversion = match faster(outcome).first() {
            Some((arm, _)) => arguments(&arm.conversions.join(" "), &arm.share),
            None => arguments(&hottest.conversion(hottest.algorithms()[0]), &[]),
        };
        show(Scene::Text(match &self.keep {
            Some(_) => format!("Program and source are in {}.", directory.display()),
            None => "To play with the program: relatch demo --keep DIR".to_owned(),
        }));
        show(Scene::Text("Then with a program of yours:".to_owned()));
        for command in [
            "relatch stat -- YOUR_PROGRAM ...".to_owned(),
            "relatch try -c 'mutex@CLASS=qrwlock' -n 20 --until-ci 2 -- YOUR_PROGRAM ..."
                .to_owned(),
            format!("eval \"$(relatch env{conversion})\"   # what this shell starts is converted"),
        ] {
            show(Scene::Command(command));
        }
    }
}

/// The class whose locks were waited for longest, and the site that waited longest for them.
struct Hottest<'a> {
    class: &'a Class,
    site: &'a Site,
}

impl<'a> Hottest<'a> {
    fn of(recording: &'a Recording) -> Option<Self> {
        let cost = |figures: Figures| (figures.wait_ns, figures.hold_ns, figures.total());
        let class = recording.classes.iter().max_by_key(|class| cost(class.figures()))?;
        let site = class
            .sites
            .iter()
            .max_by_key(|site| cost(recording::sum_of([&site.exclusive, &site.shared])))?;
        Some(Self { class, site })
    }

    fn sentences(&self, recording: &Recording) -> String {
        let Self { class, site } = self;
        let (of_class, all) = (class.figures(), recording.total());
        let at_site = recording::sum_of([&site.exclusive, &site.shared]);
        let share = |part: u64, whole: u64| 100.0 * part as f64 / (whole as f64).max(1.0);
        format!(
            "The hottest class is {} ({}): {:.0} % of all waiting. {:.1} % of its {} acquisitions found it \
             taken (CON), one waited {:.1} us on average. Within it {} waited longest, {:.0} % of that. Both \
             names are those of callers: the wrappers that call pthread_mutex_* were seen through.",
            function(&class.name),
            class.kind.name(),
            share(of_class.wait_ns, all.wait_ns),
            share(of_class.contended, of_class.acquisitions),
            of_class.acquisitions,
            of_class.wait_mean_ns() / 1e3,
            function(&site.name),
            share(at_site.wait_ns, of_class.wait_ns),
        )
    }

    fn kind(&self) -> Kind {
        match self.class.kind {
            recording::Kind::Mutex => Kind::Mutex,
            recording::Kind::Rwlock => Kind::Rwlock,
            recording::Kind::Spin => Kind::Spin,
        }
    }

    /// What locks of this kind can become.
    fn algorithms(&self) -> Vec<Algorithm> {
        let other = |algorithm: &Algorithm| {
            *algorithm != Algorithm::Same && algorithm.applies_to(self.kind())
        };
        Algorithm::ALL.into_iter().filter(other).collect()
    }

    fn conversion(&self, algorithm: Algorithm) -> String {
        format!("{}@{}={algorithm}", self.kind(), function(&self.class.name))
    }

    /// One plan per algorithm; and the first that has a shared mode once more, taken shared.
    fn plans(&self) -> Result<Vec<Plan>, String> {
        let plan = |algorithm| Ok::<_, String>(Plan::from_arg(&self.conversion(algorithm))?);
        let algorithms = self.algorithms();
        let mut plans =
            algorithms.iter().map(|&algorithm| plan(algorithm)).collect::<Result<Vec<_>, _>>()?;
        if let Some(&shared) = algorithms.iter().find(|algorithm| algorithm.has_shared_mode()) {
            plans.push(plan(shared)?.with_share(&[READER])?);
        }
        Ok(plans)
    }
}

/// What selects a plan on the command line.
fn arguments(conversion: &str, share: &[String]) -> String {
    let share: String = share.iter().map(|site| format!(" --share {site}")).collect();
    format!(" -c '{conversion}'{share}")
}

/// The name without the offset, by which a conversion finds it after the next compilation too.
fn function(name: &str) -> &str {
    name.rsplit_once("+0x").map_or(name, |(function, _)| function)
}

/// Plans that were faster, with their ratio of the headline, the fastest first.
fn faster(outcome: &Outcome) -> Vec<(&ArmOutcome, f64)> {
    let mut faster = with_verdict(outcome, Verdict::Faster);
    faster.sort_by(|a, b| a.1.total_cmp(&b.1));
    faster
}

fn with_verdict(outcome: &Outcome, verdict: Verdict) -> Vec<(&ArmOutcome, f64)> {
    let plans = outcome.arms.iter().filter(|arm| arm.role == Role::Plan);
    plans
        .filter_map(|arm| {
            let versus = arm.results.first()?.versus_same.as_ref()?;
            (versus.verdict == verdict.word()).then_some((arm, versus.ratio))
        })
        .collect()
}

fn conclusion(outcome: &Outcome) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let listed = |arms: &[(&ArmOutcome, f64)]| {
        let parts: Vec<String> = (arms.iter())
            .map(|(arm, ratio)| format!("{} ({:+.0} % time)", label(arm), percent(*ratio)))
            .collect();
        parts.join(", ")
    };
    let mut sentences = Vec::new();
    let faster = faster(outcome);
    if faster.is_empty() {
        sentences.push(
            "No lock was shown to be faster than the one that the program has: a result, too. Another \
             machine, or more rounds, may say otherwise."
                .to_owned(),
        );
    } else {
        sentences.push(format!("Faster here: {}.", listed(&faster)));
    }
    let slower = with_verdict(outcome, Verdict::Slower);
    if !slower.is_empty() {
        sentences.push(format!("Slower: {}.", listed(&slower)));
    }
    for word in [Verdict::Equivalent, Verdict::Undecided] {
        let arms = with_verdict(outcome, word);
        if !arms.is_empty() {
            let names: Vec<String> = arms.iter().map(|(arm, _)| label(arm)).collect();
            sentences.push(format!("{}: {}.", capital(word.word()), names.join(", ")));
        }
    }
    sentences.extend(faster.first().and_then(|(arm, _)| price(arm, outcome)));
    sentences.push(
        "A verdict holds for this program on this machine; no lock is best everywhere.".to_owned(),
    );
    sentences.join(" ")
}

/// What may be worse with the fastest arm: the longest wait beside that of the program's own lock, and
/// CPU time.
fn price(fastest: &ArmOutcome, outcome: &Outcome) -> Option<String> {
    let arm = |role| outcome.arms.iter().find(|arm: &&ArmOutcome| arm.role == role);
    let longest = |arm: &ArmOutcome| {
        let waits = arm.waits.as_ref()?;
        waits.exclusive_max_ns.max(waits.shared_max_ns)
    };
    let now = longest(fastest)?;
    let before = arm(Role::Recorded).and_then(longest)?;
    let cpu = 100.0 * (fastest.cpu_s? / arm(Role::Same)?.cpu_s? - 1.0);
    let ms = |ns: u64| ns as f64 / 1e6;
    Some(format!(
        "What may be worse with {}: its longest wait was {:.1} ms, that of the program's own lock {:.1} ms \
         (recorded); CPU time {cpu:+.0} %.",
        label(fastest),
        ms(now),
        ms(before),
    ))
}

/// The arm in a sentence.
fn label(arm: &ArmOutcome) -> String {
    let mut label = arm.conversions.join(" ");
    if !arm.share.is_empty() {
        label += &format!(" shared by {}", arm.share.join(", "));
    }
    label
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use relatch_record::recording::Origin;

    fn figures(acquisitions: u64, contended: u64, wait_ns: u64) -> Figures {
        Figures { acquisitions, contended, wait_ns, ..Figures::NONE }
    }

    fn site(name: &str, exclusive: Figures) -> Site {
        Site {
            name: name.into(),
            function: String::new(),
            file: None,
            line: None,
            module: String::new(),
            exclusive,
            shared: Figures::NONE,
        }
    }

    fn class(name: &str, kind: recording::Kind, sites: Vec<Site>) -> Class {
        let exclusive = recording::sum_of(sites.iter().map(|site| &site.exclusive));
        Class {
            name: name.into(),
            kind,
            origin: Origin::Init,
            locks: 1,
            exclusive,
            shared: Figures::NONE,
            sites,
        }
    }

    #[test]
    fn the_hottest_is_the_longest_waited_for() {
        let busy =
            class("often+0x1", recording::Kind::Mutex, vec![site("a+0x1", figures(900, 0, 0))]);
        let sites =
            vec![site("get+0x10", figures(40, 20, 2000)), site("put+0x10", figures(60, 5, 6000))];
        let waited = class("cache_new+0x2f", recording::Kind::Rwlock, sites);
        let recording = Recording { classes: vec![busy, waited], ..Recording::default() };
        let hottest = Hottest::of(&recording).unwrap();
        assert_eq!((&*hottest.class.name, &*hottest.site.name), ("cache_new+0x2f", "put+0x10"));
        let plans: Vec<String> =
            hottest.plans().unwrap().into_iter().map(|plan| plan.name).collect();
        let expected =
            ["rwlock@cache_new=qrwlock", "rwlock@cache_new=rwsem", "rwlock@cache_new=qrwlock"];
        assert_eq!(plans, expected);
        let text = hottest.sentences(&recording);
        assert!(
            text.contains("cache_new (rwlock): 100 % of all waiting. 25.0 % of its 100"),
            "{text}"
        );
        assert!(text.contains("put waited longest, 75 % of that"), "{text}");
        assert!(Hottest::of(&Recording::default()).is_none());
    }

    #[test]
    fn a_function_is_a_name_without_its_offset() {
        assert_eq!(function("f+0x30"), "f");
        assert_eq!(function("X::operator+(int)+0x0"), "X::operator+(int)");
        assert_eq!(function("(others)"), "(others)");
    }
}
