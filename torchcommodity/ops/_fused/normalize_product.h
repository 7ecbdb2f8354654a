// Batch normalization of a product on the device for which this is compiled: the algorithms differ.
#pragma once
#include "kernel.h"

#if defined(COMMODITY_GPU)
#include "batch_norm_device.h"
#else
#include "batch_norm.h"
#endif
