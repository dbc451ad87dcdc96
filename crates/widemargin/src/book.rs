//! The examples of the book in `docs/` and of the README, compiled and run as tests.

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(#[doc = include_str!(concat!("../../../", $path))] mod $name {})*
    };
}

pages! {
    readme: "README.md",
    coming_from_libsvm: "docs/coming-from-libsvm.md",
    compare: "docs/compare.md",
    coming_from_liblinear: "docs/coming-from-liblinear.md",
    compression: "docs/compression.md",
    cross_validation: "docs/cross-validation.md",
    data: "docs/data.md",
    kernels: "docs/kernels.md",
    models: "docs/models.md",
    probabilities: "docs/probabilities.md",
    rust_api: "docs/rust-api.md",
    machines: "docs/machines/README.md",
    c_svc: "docs/machines/c-svc.md",
    nu_svc: "docs/machines/nu-svc.md",
    epsilon_svr: "docs/machines/epsilon-svr.md",
    nu_svr: "docs/machines/nu-svr.md",
    one_class: "docs/machines/one-class.md",
    svdd: "docs/machines/svdd.md",
    multiclass: "docs/machines/multiclass.md",
    all_in_one: "docs/machines/all-in-one.md",
    online: "docs/machines/online.md",
    linear: "docs/machines/linear.md",
    out_of_core: "docs/out-of-core.md",
    distributed: "docs/distributed.md",
    fisher: "docs/machines/fisher.md",
    threshold: "docs/threshold.md",
    mixtures: "docs/machines/mixtures.md",
    neighbours: "docs/machines/neighbours.md",
    windows: "docs/machines/windows.md",
    clusters: "docs/machines/clusters.md",
    max_margin_clustering: "docs/machines/max-margin-clustering.md",
    robust: "docs/machines/robust.md",
    semi_supervised: "docs/machines/semi-supervised.md",
    least_squares: "docs/machines/least-squares.md",
    ranking: "docs/machines/ranking.md",
    hidden_markov: "docs/machines/hidden-markov.md",
    chains: "docs/machines/chains.md",
    multiple_kernels: "docs/machines/multiple-kernels.md",
}
