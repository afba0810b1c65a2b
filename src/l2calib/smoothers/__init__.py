"""Rules for rho = (psi, kappa), and with them mu-hat."""
