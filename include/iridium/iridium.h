// Everything.
#pragma once

#include "iridium/bootstrap.h"
#include "iridium/context.h"
#include "iridium/errors.h"
#include "iridium/info.h"
#include "iridium/settings.h"
#include "iridium/stream.h"
#include "iridium/symmetric_array.h"
#include "iridium/team.h"
#include "iridium/types.h"
#include "iridium/version.h"
