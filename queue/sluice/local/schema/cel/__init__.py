"""CEL as Kubernetes speaks it, on Google's C++ implementation (`cel-expr-python`)."""
