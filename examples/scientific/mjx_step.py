"""A step of physics in MuJoCo's MJX: a pendulum of two links with a motor, in contact with nothing."""

import jax
import mujoco
import numpy as np
from comparison import compare
from mujoco import mjx

MODEL = """
<mujoco>
  <option timestep="0.01" iterations="1" ls_iterations="4"/>
  <worldbody>
    <body>
      <joint name="shoulder" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" contype="0" conaffinity="0"/>
      <body pos="0 0 -0.5">
        <joint name="elbow" type="hinge" axis="0 1 0" damping="0.1" range="-1 1" limited="true"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0 0 -0.4" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder" gear="2"/></actuator>
</mujoco>
"""


def main():
    model = mujoco.MjModel.from_xml_string(MODEL)
    on_device, start = mjx.put_model(model), mjx.make_data(model)

    def stepped(positions, velocities, control):
        data = start.replace(qpos=positions, qvel=velocities, ctrl=control)
        for _ in range(2):
            data = mjx.step(on_device, data)
        return data.qpos, data.qvel

    arguments = [np.float32([0.3, 0.9]), np.float32([0.5, 1.5]), np.float32([0.7])]
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.jit(stepped)(*arguments))):
        raise SystemExit("JAX's own numbers are not finite")
    compare("mjx", stepped, arguments, 1e-3)


main()
