//! Scheduling, allocation and assembling: what the driver makes of small programs, and what the checker says to it.

mod driver;
mod properties;
mod support;
