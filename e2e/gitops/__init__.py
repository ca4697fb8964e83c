"""What deploy/ holds that is made from other files, and a program that asks Argo CD's own code about it."""
