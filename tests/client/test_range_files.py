"""Files of training runs and identifications, in the formats that Isaac Lab, mjlab, mujoco.sysid and PACE write."""

import json
from itertools import pairwise

import pytest
from gapwatch_client import Gapwatch
from gapwatch_client.import_command import main
from gapwatch_client.range_files import UnreadableRanges, load_yaml, ranges_of, read_ranges

ISAAC_LAB = """
sim:
  dt: 0.005
decimation: 4
scene:
  robot:
    actuators:
      legs:
        joint_names_expr: &names
        - .*
        stiffness:
          .*: 25.0
        damping: 0.5
        armature: 0.0
observations:
  policy:
    base_lin_vel:
      func: isaaclab.envs.mdp.observations:base_lin_vel
      noise:
        func: isaaclab.utils.noise.noise_model:uniform_noise
        operation: add
        n_min: -0.1
        n_max: 0.1
    enable_corruption: true
events:
  physics_material:
    func: isaaclab.envs.mdp.events:randomize_rigid_body_material
    params:
      asset_cfg:
        name: robot
        joint_ids: !!python/object/apply:builtins.slice
        - null
        - null
        - null
        body_names: *names
      static_friction_range: !!python/tuple
      - 0.6
      - 1.0
      restitution_range: !!python/tuple
      - 0.0
      - 0.0
      num_buckets: 64
    mode: startup
  add_base_mass:
    params:
      mass_distribution_params: !!python/tuple [-1.0, 3.0]
      operation: add
    mode: startup
  gains:
    params:
      stiffness_distribution_params: !!python/tuple [0.8, 1.2]
      operation: scale
      distribution: log_uniform
  base_com:
    params:
      com_range:
        x: !!python/tuple [-0.05, 0.05]
        z: !!python/tuple [-0.01, 0.01]
  reset_base:
    params:
      pose_range:
        x: !!python/tuple [-0.5, 0.5]
      velocity_range: {}
    mode: reset
  nothing: null
"""
MJLAB = """
events:
  foot_friction:
    mode: startup
    func: mjlab.envs.mdp.events.randomize_field
    params:
      field: geom_friction
      operation: abs
      ranges: !!python/tuple [0.3, 1.2]
  encoder_bias:
    params:
      field: qpos0
      operation: add
      distribution: gaussian
      ranges:
        0: !!python/tuple [0.0, 0.02]
"""
SYSID = """
link_mass:
  frozen: false
  max_value: [1.5]
  min_value: [0.5]
  name: link_mass
  nominal: [1.0]
  value: [1.1]
damping:
  frozen: false
  max_value: [2.0, 3.0]
  min_value: [0.0, 0.0]
  nominal: [1.0, 1.5]
gear:
  frozen: true
  max_value: 9.0
  min_value: 1.0
  nominal: 6.0
"""


def by_name(text):
    return {one.pop("name"): one for one in ranges_of(load_yaml(text))}


def test_an_env_yaml_of_isaac_lab():
    found = by_name(ISAAC_LAB)
    friction = found["physics_material.static_friction"]
    assert (friction["low"], friction["high"], friction["operation"]) == (0.6, 1.0, "abs")
    assert found["physics_material.restitution"]["low"] == found["physics_material.restitution"]["high"] == 0.0
    assert found["add_base_mass.mass"] == {
        "low": -1.0, "high": 3.0, "distribution": "uniform", "operation": "add",
    }  # fmt: skip
    gains = found["gains.stiffness"]
    assert (gains["operation"], gains["distribution"], gains["nominal"]) == ("scale", "log_uniform", 25.0)
    assert found["base_com.com.x"]["operation"] == "add"
    assert found["noise.policy.base_lin_vel"]["high"] == 0.1
    assert found["control_dt"]["low"] == pytest.approx(0.02)
    assert found["actuators.legs.damping"]["low"] == found["actuators.legs.damping"]["high"] == 0.5
    assert not any(name.startswith("reset_base") for name in found), "where episodes begin is no parameter"


def test_an_env_yaml_of_mjlab_with_a_gaussian():
    found = by_name(MJLAB)
    assert (found["foot_friction.geom_friction"]["low"], found["foot_friction.geom_friction"]["high"]) == (
        0.3,
        1.2,
    )
    bias = found["encoder_bias.qpos0.0"]
    assert (bias["low"], bias["high"], bias["distribution"]) == (0.0, 0.02, "gaussian"), "mean and spread"


def test_parameters_of_mujoco_sysid():
    found = by_name(SYSID)
    assert found["link_mass"]["nominal"] == 1.0
    assert (found["damping.1"]["low"], found["damping.1"]["high"]) == (0.0, 3.0)
    assert found["gear"]["low"] == found["gear"]["high"] == 6.0, "frozen is not randomised"


def test_bounds_of_pace():
    bounds = [[1e-5, 1.0]] * 2 + [[0.0, 7.0]] * 2 + [[0.0, 0.5]] * 2 + [[-0.1, 0.1]] * 2 + [[0.0, 10.0]]
    found = by_name(json.dumps({"sim2real": {"joint_order": ["LF_HAA", "LF_HFE"], "bounds_params": bounds}}))
    assert len(found) == 9
    assert found["damping.LF_HFE"]["high"] == 7.0
    assert found["bias.LF_HAA"]["unit"] == "rad"
    assert found["delay"]["high"] == 10.0
    with pytest.raises(UnreadableRanges, match="want 9 bounds"):
        by_name(json.dumps({"joint_order": ["a", "b"], "bounds_params": bounds[:-1]}))


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system [echo hacked]",
        "!!python/object/apply:builtins.eval ['1']",
        "!!python/object/new:builtins.slice [1, 2, 3]",
        "!!python/name:os.system ''",
        "!!python/module:os ''",
        "!!python/object:builtins.slice {}",
        "!custom 1",
        "!!python/object/apply:builtins.slice 'x'",
        "!!python/tuple 'x'",
    ],
)
def test_every_other_tag_is_refused(tag):
    with pytest.raises(UnreadableRanges):
        load_yaml(f"events:\n  a: {tag}\n")


def test_references_do_not_make_a_small_file_endless(tmp_path):
    nested = "a: &a [1, 2]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise("abcdefghij"))
    deep = load_yaml(nested + "events: {t: {params: {x_range: *j}}}\n")
    assert ranges_of(deep) == []
    loop = load_yaml("events: {t: {params: {x_range: &x [*x, *x]}}}\n")
    assert ranges_of(loop) == []


def test_what_is_no_such_file_says_so(tmp_path):
    for content, words in (
        (b"\x80\x04pickle", "not a text"),
        (b"[1]", "mapping"),
        (b"a: 1", "neither"),
        (b"{", "YAML"),
    ):
        path = tmp_path / "file.yaml"
        path.write_bytes(content)
        with pytest.raises(UnreadableRanges, match=words):
            read_ranges(path)


def test_a_file_is_imported_and_a_dict_is_sent(project, tmp_path, capsys):
    path = tmp_path / "env.yaml"
    path.write_text(ISAAC_LAB)
    arguments = ["--url", project.url, "--key", project.keys["ingest"], "--spool", str(tmp_path / "spool")]
    asked = ["--ranges", str(path), "--simulator", "isaac-lab@5.1", "--nominal", "add_base_mass.mass=6.9"]
    asked += ["--signal", "physics_material.static_friction=friction"]
    assert main([*arguments, *asked]) == 0, capsys.readouterr().out
    with project.client("read") as client:
        stored = client.get("/simulators/isaac-lab/5.1/ranges").json()["parameters"]
    by_its_name = {one["name"]: one for one in stored}
    assert by_its_name["add_base_mass.mass"]["nominal"] == 6.9
    assert by_its_name["physics_material.static_friction"]["signal"] == "friction"
    assert main([*arguments, "--ranges", str(path)]) == 2
    assert main([*arguments, "--ranges", str(tmp_path / "none.yaml"), "--simulator", "a@1"]) == 65
    assert main(arguments) == 2
    with Gapwatch(project.url, project.keys["ingest"], tmp_path / "gw", simulator="mujoco@3.3", linger_s=0) as gw:
        assert gw.ranges(
            {"friction": (0.4, 0.8), "mass": {"low": -1, "high": 3, "operation": "add", "nominal": 6.9}}
        )
        assert gw.ranges(str(path), simulator="isaac/lab", version="6")
        assert not gw.ranges({"friction": (0.8, 0.4)})
        assert not gw.ranges({"friction": 3})
        assert gw.status()["complaints"]["ranges"] == 2
    with project.client("read") as client:
        assert [one["name"] for one in client.get("/simulators/mujoco/3.3/ranges").json()["parameters"]] == [
            "friction",
            "mass",
        ]
        assert client.get("/simulators/isaac/lab/6/ranges").is_success
