//! kgen: cryptographic kernels at the limit of a machine. This library is for `build.rs`; the command is `kgen`.
