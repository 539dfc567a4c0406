//! `-c CONVERSION [--share SITE]...`, repeated: each `--share` belongs to the `-c` before it.

use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use relatch_plan::Plan;

/// The conversions in their order, each with its shares.
pub struct Conversions(Vec<(String, Vec<String>)>);

impl Conversions {
    /// One plan per `-c`.
    pub fn plans(&self) -> Result<Vec<Plan>, String> {
        self.0.iter().map(|(text, share)| Ok(Plan::from_arg(text)?.with_share(share)?)).collect()
    }

    /// All of them together as one plan; none without any.
    pub fn one_plan(&self) -> Result<Option<Plan>, String> {
        Ok(self.plans()?.into_iter().reduce(|mut all, plan| {
            all.append(plan);
            all
        }))
    }
}

impl FromArgMatches for Conversions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let placed = |id: &str| -> Vec<(usize, String)> {
            let places = matches.indices_of(id).into_iter().flatten();
            places.zip(matches.get_many(id).into_iter().flatten().cloned()).collect()
        };
        let conversions = placed("conversion");
        let mut shares = placed("share").into_iter().peekable();
        if shares.peek().is_some_and(|(place, _)| conversions.first().is_none_or(|c| place < &c.0))
        {
            let text = "--share belongs to the -c before it\n";
            return Err(Error::raw(clap::error::ErrorKind::MissingRequiredArgument, text));
        }
        let ends = conversions.iter().skip(1).map(|(place, _)| *place).chain([usize::MAX]);
        let conversions = (conversions.iter().zip(ends))
            .map(|((_, text), end)| {
                let mut own = Vec::new();
                while let Some((_, site)) = shares.next_if(|(place, _)| *place < end) {
                    own.push(site);
                }
                (text.clone(), own)
            })
            .collect();
        Ok(Self(conversions))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Conversions {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("conversion")
                    .short('c')
                    .value_name("CONVERSION")
                    .action(ArgAction::Append)
                    .help("KIND[@SELECTOR]=ALGORITHM, or @FILE for a plan file")
                    .long_help(
                        "KIND[@SELECTOR]=ALGORITHM: locks of KIND (mutex, rwlock, spin) become ALGORITHM. \
                         SELECTOR is a glob over the names of classes and sites as `relatch stat` \
                         prints them; without it all locks of the kind are meant. @FILE reads a plan \
                         file (TOML). Repeat for more.",
                    ),
            )
            .arg(
                Arg::new("share")
                    .long("share")
                    .value_name("SITE")
                    .action(ArgAction::Append)
                    .help("Sites (glob) that take the locks of the -c before it shared"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
