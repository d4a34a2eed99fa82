//! The timing model of a machine that a target file describes.

use super::model::{CORE_PARAMETERS, QueueLayout, RegisterFileLayout, Setting, TimingLayout, TimingModel, UnitLayout};
use crate::machine::Machine;

impl TimingModel {
    /// The model of `machine`: its queues, those of its units that stand behind a queue, in order, and all its
    /// register files under their numbers there. Parameters that the core does not use go to
    /// [`TimingModel::row_parameters`].
    ///
    /// # Errors
    ///
    /// Missing and malformed core parameters, and what [`TimingModel::validate`] finds; a machine without timing
    /// parameters (an exposed pipeline) has none of them.
    pub fn from_machine(machine: &Machine) -> Result<Self, Vec<String>> {
        let Some(misalign_boundary_bytes) = machine.misalign_boundary_bytes else {
            return Err(vec![format!("machine {} does not say which boundary makes an access misaligned", machine.name)]);
        };
        let flag = |flag: bool| Setting::Number(u32::from(flag));
        let layout = TimingLayout {
            queues: machine
                .queues
                .iter()
                .map(|queue| QueueLayout {
                    name: queue.name.clone(),
                    entries: Setting::Number(queue.entries),
                    dispatch: Setting::Number(queue.dispatch),
                    issue: Setting::Number(queue.issue),
                    window: Setting::Number(queue.window),
                    out_of_order: flag(queue.out_of_order),
                })
                .collect(),
            units: machine
                .units
                .iter()
                .filter_map(|unit| {
                    unit.queue.as_ref().map(|queue| UnitLayout {
                        name: unit.name.clone(),
                        queue: queue.clone(),
                        copies: Setting::Number(unit.copies),
                        reservation_stations: Setting::Number(unit.stations),
                        finish: Setting::Number(unit.finish_cycles),
                        dispatch: unit.dispatch.map(Setting::Number),
                        in_flight: unit.in_flight.map(Setting::Number),
                        retires_oldest: flag(unit.retires_oldest),
                    })
                })
                .collect(),
            register_files: machine
                .register_files
                .iter()
                .map(|file| RegisterFileLayout {
                    name: file.name.clone(),
                    renames: file.renames.map(Setting::Number),
                    branch_delay: Setting::Number(file.branch_delay_cycles),
                })
                .collect(),
            misalign_boundary_bytes,
            row_parameters: machine
                .parameters
                .iter()
                .map(|parameter| parameter.name.clone())
                .filter(|name| !CORE_PARAMETERS.contains(&name.as_str()))
                .collect(),
        };
        let parameters = machine.parameters.iter().map(|parameter| (parameter.name.as_str(), parameter.value.as_str()));
        TimingModel::from_parameters(&layout, parameters)
    }
}
