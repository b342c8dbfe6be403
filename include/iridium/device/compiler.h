// What the device headers need to know about the compiler at work.
#pragma once

/// Marks a function that kernels may call: it is compiled for the CPU and, by a GPU's compiler, for
/// the GPU too.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define IR_DEVICE __host__ __device__
#else
#define IR_DEVICE
#endif

/// Set while code for an NVIDIA GPU is generated; not while nvcc compiles the host's half of a
/// file.
#if defined(__CUDA_ARCH__)
#define IR_ON_CUDA 1
#else
#define IR_ON_CUDA 0
#endif

/// Set while code for an AMD GPU is generated.
#if defined(__HIP_DEVICE_COMPILE__)
#define IR_ON_HIP 1
#else
#define IR_ON_HIP 0
#endif

/// Before a function that only failures call. It stays out of the kernels' code, which a GPU
/// fetches anew at every launch.
#if IR_ON_CUDA || IR_ON_HIP
#define IR_COLD __attribute__((noinline))
#else
#define IR_COLD
#endif

/// Before a loop that should stay one. A GPU fetches a kernel's instructions anew at every launch,
/// so that code which runs once, or only when something has failed, should at least be short.
#if IR_ON_CUDA || IR_ON_HIP
#define IR_ROLLED _Pragma("unroll 1")
#else
#define IR_ROLLED
#endif

/// Before a loop that a GPU's compiler must unroll: over values that are to stay in registers.
#if IR_ON_CUDA || IR_ON_HIP
#define IR_UNROLLED _Pragma("unroll")
#else
#define IR_UNROLLED
#endif
