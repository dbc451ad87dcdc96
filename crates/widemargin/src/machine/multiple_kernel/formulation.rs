//! The dual problems of the machine inside, and the model that their solutions are.

use super::BaseMachine;
use super::approximate::{Classes, FeatureProblem, Function, HalfSpace, ProblemKind};
use super::duals::{Problems, Solutions, TwoClass};
use crate::data::Label;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::fit::FitInput;
use crate::machine::model::{ClassTable, MachineKind, Model, Scheme, Training};
use crate::machine::multiclass::class_model;
use crate::machine::specification::Value;
use crate::machine::training::{Expansion, RowSegments, TrainingCost, assemble, check_outcome};
use crate::machine::{AllInOne, Precision, linear_model};
use crate::outcome::Outcome;
use crate::solver::linear::RowLoss;
use crate::solver::{s2do, smo};

/// A machine's problems over segments of rows.
pub(super) struct Formulation {
    kind: MachineKind,
    /// Rows of the data set, segment after segment.
    pub(super) rows: Vec<Vec<usize>>,
    duals: Duals,
    known: RowLabels,
    classes: Option<(Vec<Label>, Scheme)>,
    parameters: Vec<(String, Value)>,
}

/// Classes or targets of all rows, in the order of the segments.
enum RowLabels {
    Classes(Vec<u32>),
    Targets(Vec<f64>),
    Nothing,
}

enum Duals {
    TwoClass(Vec<(Vec<usize>, smo::Problem)>),
    Classes(AllInOne, s2do::Problem),
}

impl Formulation {
    /// Writes down the problems after the checks of the machine.
    pub(super) fn new(machine: &BaseMachine, input: FitInput<'_>) -> Result<Self> {
        match machine {
            BaseMachine::Svc(svc) => {
                let found = svc.two_class_problems(&input)?;
                let segments = found.rows.iter().enumerate();
                let codes = segments.flat_map(|(s, rows)| rows.iter().map(move |_| s as u32));
                Ok(Self {
                    kind: MachineKind::CSvc,
                    known: RowLabels::Classes(codes.collect()),
                    rows: found.rows,
                    duals: Duals::TwoClass(found.problems),
                    classes: Some((found.classes.names, svc.scheme.clone())),
                    parameters: vec![("c".into(), svc.c.into())],
                })
            }
            BaseMachine::Multiclass(svc) => {
                if svc.bias {
                    return Err(Error::parameter("bias", "false with several kernels", true));
                }
                let found = svc.dual_problem(input)?;
                Ok(Self {
                    kind: MachineKind::AllInOne(svc.machine),
                    rows: vec![found.rows],
                    known: RowLabels::Classes(found.problem.codes.clone()),
                    duals: Duals::Classes(svc.machine, found.problem),
                    classes: Some((found.names, Scheme::OneVsRest)),
                    parameters: vec![("c".into(), svc.c.into())],
                })
            }
            BaseMachine::Svr(svr) => Ok(Self {
                kind: MachineKind::EpsilonSvr,
                rows: vec![input.rows().collect()],
                known: RowLabels::Targets(input.labels().values()?),
                duals: Duals::TwoClass(vec![(vec![0, 0], svr.dual_problem(&input)?)]),
                classes: None,
                parameters: vec![
                    ("c".into(), svr.c.into()),
                    ("epsilon".into(), svr.epsilon.into()),
                ],
            }),
            BaseMachine::OneClass(machine) => Ok(Self {
                kind: MachineKind::OneClass,
                rows: vec![input.rows().collect()],
                known: RowLabels::Nothing,
                duals: Duals::TwoClass(vec![(vec![0], machine.dual_problem(&input)?)]),
                classes: None,
                parameters: vec![("nu".into(), machine.nu.into())],
            }),
        }
    }

    /// The problems, not yet solved.
    pub(super) fn problems(&self) -> Problems {
        match &self.duals {
            Duals::TwoClass(problems) => Problems::TwoClass(
                problems
                    .iter()
                    .map(|(segments, problem)| TwoClass {
                        segments: segments.clone(),
                        problem: problem.clone(),
                        solution: None,
                        pace: f64::INFINITY,
                    })
                    .collect(),
            ),
            Duals::Classes(_, problem) => Problems::Classes(Box::new(problem.clone()), None),
        }
    }

    /// The problems over features of the rows, segment after segment.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a squared loss or another machine of all classes than that of Crammer and Singer,
    /// for which there is no linear solver.
    pub(super) fn feature_problems(&self) -> Result<Vec<FeatureProblem>> {
        let mut ends = vec![0];
        for rows in &self.rows {
            ends.push(ends[ends.len() - 1] + rows.len());
        }
        let whole = || (0..ends[ends.len() - 1]).collect();
        let refuse = |name, expected: &str, found: String| {
            Err(Error::parameter(name, format!("{expected} with approximate features"), found))
        };
        match &self.duals {
            Duals::Classes(AllInOne::CrammerSinger, problem) => {
                let (right, costs) = (problem.codes.clone(), problem.upper.clone());
                let classes = Classes::new(problem.classes, right, costs);
                Ok(vec![FeatureProblem { rows: whole(), kind: ProblemKind::Classes(classes) }])
            }
            Duals::Classes(machine, _) => refuse("machine", "c-svc or cs", machine.to_string()),
            Duals::TwoClass(problems) if problems.iter().any(|(_, one)| one.ridge.is_some()) => {
                refuse("loss", "hinge", "squared-hinge".into())
            }
            Duals::TwoClass(problems) => {
                let of = |(segments, problem): &(Vec<usize>, smo::Problem)| {
                    let kind = match self.kind {
                        MachineKind::OneClass => ProblemKind::HalfSpace(HalfSpace {
                            upper: problem.upper.clone(),
                            total: problem.start.iter().sum(),
                        }),
                        MachineKind::EpsilonSvr => ProblemKind::Function(tube(problem)),
                        _ => ProblemKind::Function(hinge(problem)),
                    };
                    // A regression has every row twice.
                    let segments = if segments[..] == [0, 0] { &segments[..1] } else { segments };
                    let rows = segments.iter().flat_map(|&s| ends[s]..ends[s + 1]).collect();
                    FeatureProblem { rows, kind }
                };
                Ok(problems.iter().map(of).collect())
            }
        }
    }

    /// The model of linear functions over `width` features, function after function.
    pub(super) fn linear_model(
        &self,
        width: usize,
        weights: Vec<f64>,
        constants: &[f64],
    ) -> Result<Model> {
        let kind = match self.kind {
            MachineKind::EpsilonSvr => MachineKind::LinearSvr,
            MachineKind::OneClass => MachineKind::LinearOneClass,
            _ => MachineKind::LinearSvc,
        };
        let names = self.classes.as_ref().map(|(names, _)| names.clone());
        let mut model = linear_model(kind, width, weights, constants, names)?;
        if let (Some(table), Some((names, scheme))) = (&mut model.classes, &self.classes)
            && scheme.functions(names.len()) == constants.len()
        {
            table.scheme = scheme.clone();
            // Functions are the vectors of a linear model, and belong to no class.
            table.support = vec![0; names.len()];
            table.support[0] = constants.len();
        }
        Ok(model)
    }

    /// Vectors whose outer products sum to the kernel of the labels: an indicator of every class, or the
    /// targets.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a machine without labels.
    pub(super) fn label_vectors(&self) -> Result<Vec<Vec<f64>>> {
        match &self.known {
            RowLabels::Classes(codes) => {
                let of = |class| codes.iter().map(|c| f64::from(u8::from(*c == class))).collect();
                Ok((0..count(codes)).map(of).collect())
            }
            RowLabels::Targets(targets) => Ok(vec![targets.clone()]),
            RowLabels::Nothing => {
                let expected = "a rule that needs no labels for the one-class machine";
                Err(Error::parameter("weights", expected, "alignment"))
            }
        }
    }

    /// Which rows are on the positive side: of the first of two classes, or of every one against the rest.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a machine without classes.
    pub(super) fn sides(&self) -> Result<Vec<Vec<bool>>> {
        let RowLabels::Classes(codes) = &self.known else {
            let expected = "a rule that needs no classes for this machine";
            return Err(Error::parameter("weights", expected, "margin"));
        };
        let sides = if count(codes) == 2 { 1 } else { count(codes) };
        Ok((0..sides).map(|class| codes.iter().map(|c| *c == class).collect()).collect())
    }

    /// What the training record says.
    pub(super) fn parameters(&self) -> Vec<(String, Value)> {
        self.parameters.clone()
    }

    /// The model of solutions with a kernel.
    pub(super) fn model(
        &self,
        input: FitInput<'_>,
        kernel: &Kernel,
        precision: Precision,
        solutions: Solutions,
        outcome: Outcome,
        spent: TrainingCost,
        parameters: Vec<(String, Value)>,
    ) -> Result<Model> {
        check_outcome(kernel, &outcome)?;
        match (solutions, &self.duals, &self.classes) {
            (Solutions::Classes(solution), Duals::Classes(machine, problem), Some((names, _))) => {
                let mut model = class_model(
                    MachineKind::AllInOne(*machine),
                    kernel,
                    precision,
                    input.data().features(),
                    names,
                    &self.rows[0],
                    &problem.codes,
                    &solution.coefficients,
                    &solution.bias,
                );
                model.feature_names = input.data().feature_names().map(<[String]>::to_vec);
                model.training = Some(Training {
                    outcome: Outcome { kernel_rows: spent.kernel_rows, ..outcome },
                    rows: input.rows().count(),
                    seconds: spent.seconds,
                    parameters,
                    specification: None,
                });
                Ok(model)
            }
            (Solutions::TwoClass(solved), _, classes) => {
                let expansions: Vec<Expansion> =
                    solved.into_iter().map(|(segments, s)| self.expansion(segments, s)).collect();
                let layout = RowSegments::new(&self.rows);
                let (mut model, support) = assemble(
                    self.kind,
                    kernel,
                    precision,
                    &input,
                    &layout,
                    &expansions,
                    outcome,
                    spent,
                    parameters,
                )?;
                model.classes = classes.as_ref().map(|(names, scheme)| ClassTable {
                    names: names.clone(),
                    scheme: scheme.clone(),
                    support,
                });
                Ok(model)
            }
            _ => Err(Error::Interrupted),
        }
    }

    /// Several copies of a segment become one.
    fn expansion(&self, mut segments: Vec<usize>, solution: smo::Solution) -> Expansion {
        let offset =
            solution.multipliers.iter().sum::<f64>() / solution.multipliers.len().max(1) as f64;
        let mut coefficients = solution.beta;
        if segments == [0, 0] {
            let second = coefficients.split_off(coefficients.len() / 2);
            coefficients.iter_mut().zip(second).for_each(|(a, b)| *a += b);
            segments.pop();
        }
        Expansion { segments, coefficients, offset }
    }
}

/// The hinge function whose dual a problem is.
fn hinge(problem: &smo::Problem) -> Function {
    let targets = problem.linear.iter().map(|linear| -linear).collect();
    let costs = problem.upper.iter().zip(&problem.lower).map(|(u, l)| u - l).collect();
    Function::new(RowLoss::Hinge, targets, costs)
}

/// The tube function whose dual a problem is, both sides of every row one after another.
fn tube(problem: &smo::Problem) -> Function {
    let n = problem.linear.len() / 2;
    let (up, down) = problem.linear.split_at(n);
    let epsilon = up.first().zip(down.first()).map_or(0.0, |(up, down)| 0.5 * (up - down));
    let targets = up.iter().zip(down).map(|(up, down)| -0.5 * (up + down)).collect();
    Function::new(RowLoss::Tube(epsilon), targets, problem.upper[..n].to_vec())
}

/// Number of classes.
fn count(codes: &[u32]) -> u32 {
    codes.iter().max().map_or(0, |last| last + 1)
}
