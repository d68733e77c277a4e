// Runs that must have ended before another one starts, as an address and the command line say them:
// "ID" must have succeeded, "ID:any" must have ended. A list in an address has commas between them.
import type { DependencyJson } from '../gen/normlab/v1/run_pb';

export interface Dependency {
  run: string;
  condition: 'ok' | 'any';
}

export function parseDependencies(text: string): Dependency[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
    .map((one) => {
      const condition = one.endsWith(':any') ? 'any' : 'ok';
      return { run: one.replace(/:(?:any|ok)$/, ''), condition };
    });
}

export function dependencyText({ run, condition }: Dependency): string {
  return condition === 'any' ? `${run}:any` : run;
}

export function dependenciesText(list: readonly Dependency[]): string {
  return list.map(dependencyText).join(',');
}

/** Those of a run, as the API has them. */
export function dependenciesOf(after: readonly DependencyJson[]): string {
  return dependenciesText(
    after.map(({ run, condition }) => ({
      run: run ?? '',
      condition: condition === 'any' ? 'any' : 'ok',
    })),
  );
}
