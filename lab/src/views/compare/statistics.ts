// Means over seeds and their 95 % confidence intervals (Student's t).
//
// The same numbers as python/fullpipe/measures/statistics.py, whose words on the sources hold here, too: Abramowitz and Stegun,
// Handbook of Mathematical Functions (1964), 26.5.27, 26.7.1 and 26.5.8; Lentz's method (Applied Optics 15, 1976, p. 668).

export const LEVEL = 0.95;

/** A mean over seeds; null for the ends where one seed gives no interval. */
export interface Estimate {
  mean: number;
  low: number | null;
  high: number | null;
  count: number;
}

/** Mean and 95 % confidence interval of one measure over seeds; null of no values. */
export function estimate(values: readonly number[]): Estimate | null {
  const count = values.length;
  if (count === 0) return null;
  const mean = exactSum(values) / count;
  if (count === 1) return { mean, low: null, high: null, count };
  const variance = exactSum(values.map((value) => (value - mean) ** 2)) / (count - 1);
  const half = tQuantile(count - 1) * Math.sqrt(variance / count);
  return { mean, low: mean - half, high: mean + half, count };
}

/**
 * The sum, rounded once: Shewchuk's partial sums, which do not overlap (Discrete & Computational Geometry 18, 1997), as in Python's
 * `math.fsum`.
 */
export function exactSum(values: readonly number[]): number {
  const partials: number[] = [];
  for (const value of values) {
    let x = value;
    let kept = 0;
    for (const partial of partials) {
      let y = partial;
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low !== 0) {
        partials[kept] = low;
        kept += 1;
      }
      x = high;
    }
    partials.length = kept;
    partials.push(x);
  }
  let sum = partials.pop() ?? 0;
  let low = 0;
  while (partials.length > 0) {
    const before = sum;
    const next = partials.pop() ?? 0;
    sum = before + next;
    low = next - (sum - before);
    if (low !== 0) break;
  }
  // Half-way cases: what is left decides to which side.
  const rest = partials.at(-1) ?? 0;
  if ((low < 0 && rest < 0) || (low > 0 && rest > 0)) {
    const twice = low * 2;
    const rounded = sum + twice;
    if (twice === rounded - sum) sum = rounded;
  }
  return sum;
}

const quantiles = new Map<string, number>();

/** The t with P(|T| <= t) = level, by bisection. */
export function tQuantile(degrees: number, level = LEVEL): number {
  const key = `${String(degrees)} ${String(level)}`;
  const known = quantiles.get(key);
  if (known !== undefined) return known;
  let low = 0;
  let high = 1;
  while (centralProbability(high, degrees) < level) high *= 2;
  for (let turn = 0; turn < 200; turn += 1) {
    const middle = (low + high) / 2;
    if (centralProbability(middle, degrees) < level) low = middle;
    else high = middle;
  }
  const quantile = (low + high) / 2;
  quantiles.set(key, quantile);
  return quantile;
}

function centralProbability(t: number, degrees: number): number {
  return 1 - incompleteBeta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

function incompleteBeta(a: number, b: number, x: number): number {
  if (x <= 0 || x >= 1) return Math.min(Math.max(x, 0), 1);
  const front = Math.exp(logGammaOfHalves(a + b) - logGammaOfHalves(a) - logGammaOfHalves(b) + a * Math.log(x) + b * Math.log1p(-x));
  // The fraction converges fast on this side of the mean; the other side is its mirror image.
  if (x < (a + 1) / (a + b + 2)) return (front * betaFraction(a, b, x)) / a;
  return 1 - (front * betaFraction(b, a, 1 - x)) / b;
}

/** The logarithm of the gamma function of a multiple of one half, by its recurrence: degrees of freedom need no other. */
function logGammaOfHalves(x: number): number {
  let at = x % 1 === 0 ? 1 : 0.5;
  let log = at === 1 ? 0 : Math.log(Math.PI) / 2;
  for (; at < x; at += 1) log += Math.log(at);
  return log;
}

/** Lentz's method on the continued fraction of the incomplete beta function. */
function betaFraction(a: number, b: number, x: number): number {
  const tiny = 1e-300;
  const kept = (value: number) => (Math.abs(value) > tiny ? value : tiny);
  let c = 1;
  let d = 1 / kept(1 - ((a + b) * x) / (a + 1));
  let total = d;
  for (let m = 1; m < 500; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    for (const step of [even, odd]) {
      d = 1 / kept(1 + step * d);
      c = kept(1 + step / c);
      total *= c * d;
    }
    if (Math.abs(c * d - 1) < 1e-15) break;
  }
  return total;
}
