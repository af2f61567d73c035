"""Plans: the safe ways to execute a join, and what each costs.

tree          a plan as plain data: streams at the leaves, joins of two or more inputs above them
rates         what the user knows of the data, and what is assumed elsewhere
costs         rows in state, probe work, punctuations kept - of one join node
enumerate     every safe plan, the cheapest first
choice        the one that runs
"""

from streamjoin.plan.choice import PlanChoice, choose_plan
from streamjoin.plan.enumerate import Plans, plan_of, safe_plans
from streamjoin.plan.tree import Cost, JoinNode, Plan, StreamLeaf

__all__ = [
    "Cost",
    "JoinNode",
    "Plan",
    "PlanChoice",
    "Plans",
    "StreamLeaf",
    "choose_plan",
    "plan_of",
    "safe_plans",
]
