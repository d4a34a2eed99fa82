//! The timing model that the target files give is the one that these tests are written for.

use kgen_schedulers::target_file;
use kgen_schedulers::timing::TimingModel;

use crate::support::{mpc7447, mpc7448};

#[test]
fn target_files_give_the_tested_models() {
    for (name, expected) in [("mpc7447", mpc7447()), ("mpc7448", mpc7448()), ("e600", mpc7448())] {
        let machine = target_file::embedded_machine(name).expect("an embedded target");
        let model = TimingModel::from_machine(&machine).expect("a superscalar machine");
        assert_eq!(model.core, expected.core, "{name}");
        assert_eq!(model.queues, expected.queues, "{name}");
        assert_eq!(model.units, expected.units, "{name}");
        assert_eq!(model.misalign_boundary_bytes, expected.misalign_boundary_bytes, "{name}");
        for (parameter, value) in &expected.row_parameters {
            assert_eq!(model.row_parameters.get(parameter), Some(value), "{name}: {parameter}");
        }
    }
}
