// Rates from counters.

/**
 * At each time, how fast a count of bytes grew over the last `window_s`, in bits per second: from the sample at the window's begin, or
 * from the first there is. NaN where there is none before.
 */
export function rateOver(times: ArrayLike<number>, bytes: ArrayLike<number>, window_s: number): Float64Array {
  const rates = new Float64Array(times.length).fill(NaN);
  let from = 0;
  for (let at = 0; at < times.length; at += 1) {
    const now = times[at] ?? NaN;
    // Half a nanosecond of slack: times are rounded.
    while (from + 1 < at && (times[from + 1] ?? NaN) <= now - window_s + 5e-10) from += 1;
    const passed = now - (times[from] ?? NaN);
    if (at > from && passed > 0) rates[at] = (((bytes[at] ?? NaN) - (bytes[from] ?? NaN)) * 8) / passed;
  }
  return rates;
}
