"""Control flow, composites, custom calls and random bits.

Source: StableHLO specification, each operation; Random123's test vectors of Threefry 2x32 with 20 rounds.
"""

from .case import f32, i1, i32, module, scalar, u32

NUMBER, FLAG = scalar(i32(5)), scalar(i1(True))

BRANCHED = """%r = "stablehlo.if"(%a0) ({
    %0 = stablehlo.negate %a1 : tensor<i32>
    "stablehlo.return"(%0) : (tensor<i32>) -> ()
  }, { "stablehlo.return"(%a1) : (tensor<i32>) -> () }) : (tensor<i1>) -> tensor<i32>
  return %r : tensor<i32>"""

CHOSEN = """%r = "stablehlo.case"(%a0) ({
    %0 = stablehlo.constant dense<10> : tensor<i32>
    "stablehlo.return"(%0) : (tensor<i32>) -> ()
  }, {
    %1 = stablehlo.constant dense<20> : tensor<i32>
    "stablehlo.return"(%1) : (tensor<i32>) -> ()
  }, { "stablehlo.return"(%a0) : (tensor<i32>) -> () }) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>"""

# The sum of the numbers from 1 to n.
REPEATED = """%z = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = "stablehlo.while"(%a0, %z) ({
    ^bb0(%n: tensor<i32>, %s: tensor<i32>):
      %p = stablehlo.compare GT, %n, %z, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
    ^bb0(%n: tensor<i32>, %s: tensor<i32>):
      %one = stablehlo.constant dense<1> : tensor<i32>
      %m = stablehlo.subtract %n, %one : tensor<i32>
      %t = stablehlo.add %s, %n : tensor<i32>
      "stablehlo.return"(%m, %t) : (tensor<i32>, tensor<i32>) -> ()
  }) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  return %r#1 : tensor<i32>"""

COMPOSED = """%r = stablehlo.composite "my.twice" %a0 {decomposition = @twice} : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>"""
TWICE = """func.func private @twice(%x: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.add %x, %x : tensor<i32>
  return %0 : tensor<i32> }"""

CALLED = """%r = stablehlo.custom_call @Sharding(%a0) {backend_config = "", mhlo.sharding = "{replicated}"} :
    (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>"""

# The state is the key, then the counter, 64 bits each, lowest first.
RANDOM = """%0 = stablehlo.constant dense<{}> : tensor<2xui64>
  %s, %r = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>)
  return %r : tensor<2xui32>"""

CASES = [
    module("stablehlo.if", BRANCHED, [FLAG, NUMBER], scalar(i32(-5))),
    module("stablehlo.if", BRANCHED, [~FLAG, NUMBER], NUMBER),
    *(
        module("stablehlo.case", CHOSEN, [scalar(i32(n))], scalar(i32(r)))
        for n, r in ((0, 10), (1, 20), (7, 7), (-3, -3))
    ),
    module("stablehlo.while", REPEATED, [NUMBER], scalar(i32(15))),
    module("stablehlo.while", REPEATED, [-NUMBER], scalar(i32(0))),
    module("stablehlo.composite", COMPOSED, [NUMBER], scalar(i32(10)), more=TWICE),
    module("stablehlo.custom_call", CALLED, [f32(1, 2)], f32(1, 2)),
    module("stablehlo.rng_bit_generator", RANDOM.format("[0, 0]"), [], u32(0x6B200159, 0x99BA4EFE)),
    module(
        "stablehlo.rng_bit_generator", RANDOM.format(f"[{2**64 - 1}, {2**64 - 1}]"), [], u32(0x1CB996FC, 0xBB002BE7)
    ),
]
