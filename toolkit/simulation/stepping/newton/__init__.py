"""MuJoCo's Newton solver of the constraints, to the last bit, without its work on zeros.

Where objects stand on a table, most of a scene's constraint Jacobian is zero: a contact touches the arm and an object,
or an object and the table, never all of them. MuJoCo's dense solver multiplies the zeros all the same, its sparse one
adds in another order, and a robot that pushes objects amplifies the difference past any tolerance within seconds. This
package does the dense solver's arithmetic in the dense solver's order and leaves out only what adds exact zeros (after
MuJoCo 3.2.3 and https://mujoco.readthedocs.io/en/stable/computation/index.html#solver-algorithms).

- ``rows``: the constraints of one substep, and where their Jacobian may differ from zero.
- ``products``: products of vectors and of the Jacobian.
- ``cost``: cost, forces and states of the constraints at given accelerations.
- ``hessian``: the cost's second derivative, factorized.
- ``line_search``: how far to go along a direction.
- ``problem``: a model's constraint problem, and the memory that it is solved in.
- ``solver``: all of them together.
"""
