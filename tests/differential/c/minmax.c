/* Linux's lib/win_minmax.c as it is. */
#include "lib/win_minmax.c"
