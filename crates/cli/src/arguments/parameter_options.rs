//! The options that parameters of machines are given by, made from the table of machines.

use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use widemargin::machine::Specification;
use widemargin::machine::specification::{Domain, Fallback, Parameter, number};

/// A parameter as some machine has it, and the name of that machine.
pub(crate) type Owned = (String, &'static Parameter);

/// How an option is written.
pub(super) enum Form {
    /// `--NAME VALUE`
    Value,
    /// `--NAME`, or `--no-NAME` for a flag that is on by default: what it sets the flag to.
    Switch(bool),
}

/// How the option of a parameter is written.
pub(super) fn form(parameter: &Parameter) -> Form {
    match (parameter.domain, parameter.default) {
        (Domain::Flag, Fallback::Flag(true)) => Form::Switch(false),
        (Domain::Flag, _) => Form::Switch(true),
        _ => Form::Value,
    }
}

/// Every parameter of any machine, each with the machines that have it.
pub(super) fn options() -> Vec<Vec<Owned>> {
    let mut all: Vec<Vec<Owned>> = Vec::new();
    for specification in Specification::all() {
        for parameter in specification.entry().parameters() {
            let one = (specification.name(), parameter);
            match all.iter_mut().find(|known| known[0].1.name == parameter.name) {
                Some(known) => known.push(one),
                None => all.push(vec![one]),
            }
        }
    }
    all
}

/// The parameters of one machine.
pub(super) fn options_of(specification: &Specification) -> Vec<Vec<Owned>> {
    let name = specification.name();
    specification.entry().parameters().map(|parameter| vec![(name.clone(), parameter)]).collect()
}

/// The parameters that were given, by name, as they were written.
pub(super) fn given(matches: &ArgMatches, options: &[Vec<Owned>]) -> Vec<(&'static str, String)> {
    let mut given = Vec::new();
    for parameters in options {
        let name = parameters[0].1.name;
        if matches.value_source(name) != Some(ValueSource::CommandLine) {
            continue;
        }
        match form(parameters[0].1) {
            Form::Switch(on) => given.push((name, on.to_string())),
            Form::Value => {
                given.extend(matches.get_one::<String>(name).map(|text| (name, text.clone())))
            }
        }
    }
    given
}

/// The option of a parameter.
pub(super) fn option(owned: &[Owned]) -> Arg {
    let parameter = owned[0].1;
    let option = Arg::new(parameter.name)
        .help(help(owned))
        .help_heading(heading(parameter.name))
        .hide(parameter.name.starts_with("start-") || parameter.name == "centres");
    let option = match parameter.name {
        "c" => option.short('c'),
        "kernel" => option.short('k').allow_hyphen_values(true),
        "gamma" => option.short('g'),
        "tol" => option.short('e'),
        "unlabelled" | "kernels" => option.allow_hyphen_values(true),
        _ => option,
    };
    let option = match form(parameter) {
        Form::Switch(true) => return option.long(parameter.name).action(ArgAction::SetTrue),
        Form::Switch(false) => {
            // Options live as long as the program.
            let name: &'static str = format!("no-{}", parameter.name).leak();
            return option.long(name).action(ArgAction::SetTrue);
        }
        Form::Value => option.long(parameter.name).value_name(value_name(parameter)),
    };
    match parameter.domain {
        Domain::Choice(_) => {
            let option = option.hide_possible_values(true);
            option.value_parser(PossibleValuesParser::new(choices(owned)))
        }
        Domain::Real { names: [], .. } => {
            let is_number = |text: &str| match number(text) {
                Some(_) => Ok(text.to_owned()),
                None => Err("expected a number".to_owned()),
            };
            option.allow_negative_numbers(true).value_parser(is_number)
        }
        Domain::Integer { names: [], .. } => {
            let is_whole = |text: &str| match text.parse::<u64>() {
                Ok(_) => Ok(text.to_owned()),
                Err(_) => Err("expected a whole number of at least 0".to_owned()),
            };
            option.allow_negative_numbers(true).value_parser(is_whole)
        }
        // The message about a kernel names the place in the expression.
        Domain::Kernel | Domain::Kernels => option,
        _ => {
            let parameters: Vec<&'static Parameter> = owned.iter().map(|(_, one)| *one).collect();
            option.allow_negative_numbers(true).value_parser(move |text: &str| {
                match parameters.iter().any(|parameter| parameter.parse(text).is_ok()) {
                    true => Ok(text.to_owned()),
                    false => Err(format!("expected {}", parameters[0].domain.expected())),
                }
            })
        }
    }
}

/// The names that a choice has in any machine.
fn choices(owned: &[Owned]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for (_, parameter) in owned {
        if let Domain::Choice(own) = parameter.domain {
            names.extend(own.iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
        }
    }
    names
}

/// What the help of one machine says about a parameter.
pub(crate) fn parameter_help(machine: &str, parameter: &'static Parameter) -> String {
    described(&[(machine.to_owned(), parameter)], "")
}

fn help(owned: &[Owned]) -> String {
    let machines: Vec<&str> = owned.iter().map(|(machine, _)| machine.as_str()).collect();
    match machines.len() <= 4 {
        true => described(owned, &format!(" (of {})", machines.join(", "))),
        false => described(owned, ""),
    }
}

fn described(owned: &[Owned], owners: &str) -> String {
    let mut text = match form(owned[0].1) {
        Form::Switch(false) => format!("Switch off {}: {}", owned[0].1.name, owned[0].1.about),
        _ => owned[0].1.about.to_owned(),
    };
    match owned[0].1.domain {
        Domain::Choice(_) => text.push_str(&format!(": {}", choices(owned).join(", "))),
        Domain::Real { names, .. } | Domain::Integer { names, .. } if !names.is_empty() => {
            text.push_str(&format!(" ({})", owned[0].1.domain.expected()));
        }
        _ => {}
    }
    text.push_str(owners);
    let mut defaults: Vec<(String, Vec<&str>)> = Vec::new();
    for (machine, parameter) in owned {
        let Some(default) = parameter.default.value() else { continue };
        match defaults.iter_mut().find(|(own, _)| *own == default.to_string()) {
            Some((_, machines)) => machines.push(machine),
            None => defaults.push((default.to_string(), vec![machine])),
        }
    }
    let mut words = defaults.iter();
    if let (Form::Value, Some((first, _))) = (form(owned[0].1), words.next()) {
        let others = words.map(|(value, machines)| format!("; {} {value}", machines.join(", ")));
        text.push_str(&format!(" [default: {first}{}]", others.collect::<String>()));
    }
    text
}

fn heading(name: &str) -> &'static str {
    match name {
        "c" | "nu" | "epsilon" | "loss" | "multiclass" | "class-weight" | "class-order" => {
            "Machine"
        }
        "bias" | "epochs" | "strategy" | "budget" | "shuffle" => "Machine",
        "constraints" | "cut-at-unknown" | "states" | "emissions" | "smoothing" => "Machine",
        "kernel" | "gamma" | "degree" | "coef0" => "Kernel",
        "kernels" | "weights" | "jitter" | "repair" => "Kernel",
        "tol" | "gap" | "precision" | "shrinking" | "max-iter" => "Solver",
        "penalty" | "solver" | "intercept" | "approximate" => "Linear machines",
        "scale" => "Scaling",
        _ => "Classical machines",
    }
}

fn value_name(parameter: &Parameter) -> &'static str {
    match (parameter.name, parameter.domain) {
        ("gamma", _) => "GAMMA",
        ("c", _) => "NUM",
        ("precision", _) => "FORMAT",
        ("epochs", _) => "NUM|inf",
        ("intercept", _) => "none|free|NUM",
        ("loss", _) => "LOSS",
        ("multiclass", _) => "MULTICLASS",
        (_, Domain::Real { names: [], .. }) => "NUM",
        (_, Domain::Integer { names: [], .. }) => "N",
        (_, Domain::Choice(_)) => "NAME",
        (_, Domain::Kernel) => "KERNEL",
        (_, Domain::Kernels) => "KERNELS",
        (_, Domain::ClassWeights) => "WEIGHTS",
        (_, Domain::Reals(&[])) => "NUM,NUM,...",
        (_, Domain::Label) => "LABEL",
        (_, Domain::Scaling) => "HOW",
        (_, Domain::Links) => "PAIRS",
        _ => "RULE",
    }
}
