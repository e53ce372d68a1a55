"""What the field recommends against each gap category, and what to collect: one entry a category, data only.

`kinds` are the kinds of fixes that are tried against it, the usual one first. What to log in every episode stands
with the category itself (`taxonomy.Category.collect`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CategoryAdvice:
    recommend: str
    collect: str
    kinds: tuple[str, ...]


ADVICE = {
    "contact_dynamics": CategoryAdvice(
        "Identify friction and contact stiffness on the real objects, randomise around them, and fine-tune on "
        "real grasps.",
        "Force-torque and tactile traces at contact on the real objects and surfaces: 200 grasps to begin with.",
        ("fine_tuning", "system_identification", "domain_randomisation", "residual_policy"),
    ),
    "visual": CategoryAdvice(
        "Randomise light, texture and exposure over what the cameras see; adapt on footage of the site.",
        "Footage with the deployment's own cameras over whole shifts, unlabelled, each lighting at least an hour.",
        ("domain_adaptation", "domain_randomisation", "fine_tuning", "hardware"),
    ),
    "sensor_noise": CategoryAdvice(
        "Put measured noise, bias and dropout into the simulated sensors; re-zero and shield the real ones.",
        "Logs of scripted motions that repeat, 50 to 100 hours over temperature and time of day.",
        ("system_identification", "domain_randomisation", "calibration", "hardware"),
    ),
    "object_property": CategoryAdvice(
        "Simulate the objects that fail; randomise mass, size and compliance over their actual range.",
        "The actual range: weigh and measure every object class of the site, ten of each, the odd ones too.",
        ("domain_randomisation", "system_identification", "fine_tuning"),
    ),
    "environment_complexity": CategoryAdvice(
        "Bring the site's clutter and floors into simulation, and fine-tune on demonstrations from it.",
        "200 demonstrations at the site, with its light and its clutter, and a scan of the scene.",
        ("fine_tuning", "domain_adaptation", "domain_randomisation", "process"),
    ),
    "human_behavior": CategoryAdvice(
        "Replay people's recorded motions in simulation; vary timing, reach and hesitation as they do.",
        "Consented recordings of diverse participants, twenty or more, each with several handovers.",
        ("domain_randomisation", "fine_tuning", "process"),
    ),
    "robot_dynamics": CategoryAdvice(
        "Identify inertia, joint friction and damping on the real robot; randomise payload and wear.",
        "Excitation trajectories in free space with and without payload: ten minutes a joint, on each robot.",
        ("system_identification", "domain_randomisation", "residual_policy"),
    ),
    "actuation": CategoryAdvice(
        "Model the actuators (torque-speed, delay, backlash), retune gains, stay away from limits.",
        "Commanded against measured position and current in chirps and steps, cold and warm, at both voltages.",
        ("system_identification", "residual_policy", "calibration", "hardware"),
    ),
    "latency_timing": CategoryAdvice(
        "Put the measured delay and jitter into simulation; shorten the loop; act on predicted states.",
        "Time stamps at camera, inference and actuator over a full shift: the delay's distribution, not its mean.",
        ("system_identification", "domain_randomisation", "hardware", "process"),
    ),
    "state_estimation": CategoryAdvice(
        "Recalibrate on a schedule; train on estimated instead of true states.",
        "Landmark or board poses before and after each shift, for a week: how fast calibration goes.",
        ("calibration", "domain_randomisation", "process"),
    ),
    "sim_numerics": CategoryAdvice(
        "Halve the timestep and tighten the solver until results stop changing; check in a second simulator.",
        "Nothing real: 200 seeded sim episodes at half the timestep, and as many in a second simulator.",
        ("system_identification", "process", "other"),
    ),
    "policy_robustness": CategoryAdvice(
        "Train on perturbed states and recoveries; add corrections by people; stop on states it never saw.",
        "People's corrections from the states in which it fails: 100 to 200 interventions.",
        ("fine_tuning", "residual_policy", "domain_randomisation"),
    ),
    "interface_contract": CategoryAdvice(
        "Compare the contracts field by field and make them equal before anything else.",
        "A contract with every episode on both sides: units, frames, joint order, scales, rates.",
        ("process", "calibration"),
    ),
}
