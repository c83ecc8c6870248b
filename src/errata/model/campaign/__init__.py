"""A campaign: one approved correction of a product and of the products that are computed from it. Pure."""
