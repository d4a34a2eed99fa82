//! Output forms: one file each, from checked products to text.
