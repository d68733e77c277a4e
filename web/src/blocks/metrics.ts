// What is measured block by block: the diagnostics of training and the probes.
import type { RunSpecJson } from '../gen/normlab/v1/run_spec_pb';

export interface BlockMetric {
  /** Last part of its series' names: block/3/gradient_norm. */
  name: string;
  title: string;
  help: string;
  scale: 'log' | 'linear';
  /** Measured by a probe, not while training. */
  probe: boolean;
}

function training(name: string, title: string, help: string): BlockMetric {
  return { name, title, help, scale: 'log', probe: false };
}

function probe(name: string, title: string, help: string, scale: 'log' | 'linear'): BlockMetric {
  return { name, title, help, scale, probe: true };
}

export const blockMetrics: readonly BlockMetric[] = [
  training(
    'gradient_norm',
    'gradient norm',
    'L2 norm of the gradients of the block, before clipping',
  ),
  training('stream_rms', 'stream RMS', 'root mean square of the residual stream behind the block'),
  training('update_ratio', 'update ratio', 'L2 norm of the update / L2 norm of the weights'),
  training('weight_norm', 'weight norm', 'L2 norm of the weights of the block'),
  training(
    'stream_max',
    'stream maximum',
    'largest magnitude in the residual stream behind the block',
  ),
  training(
    'attention_ratio',
    'attention branch / stream',
    'RMS of the attention branch / RMS of x',
  ),
  training('cross_ratio', 'cross attention branch / stream', 'RMS of that branch / RMS of x'),
  training(
    'mlp_ratio',
    'feed-forward branch / stream',
    'RMS of the feed-forward branch / RMS of x',
  ),
  probe(
    'jacobian_gain',
    'Jacobian gain',
    'what the block does to a gradient: mean |Jᵀv| / |v|',
    'log',
  ),
  probe('jacobian_largest', 'largest singular value', 'of the Jacobian dx′/dx', 'log'),
  probe(
    'jacobian_distance',
    'distance from identity',
    'mean |(J − I)ᵀv| / |v|; 0: identity',
    'linear',
  ),
  probe(
    'angular_distance',
    'angular distance',
    'angle between x and x′ / π: 0 alike, 0.5 orthogonal',
    'linear',
  ),
  probe(
    'attention_entropy',
    'attention entropy',
    'nats; 0: every query looks at one token',
    'linear',
  ),
  probe(
    'attention_max_score',
    'largest attention score',
    'largest q·k / √d of any visible pair',
    'linear',
  ),
];

export function findMetric(name: string | undefined): BlockMetric {
  const found = blockMetrics.find((metric) => metric.name === name);
  return found ?? (blockMetrics[0] as BlockMetric);
}

export interface Block {
  /** First part of its series' names. */
  prefix: string;
  /** As people call it: 3, or E3 for the third block of an encoder. */
  label: string;
}

/** The blocks of a model, the one at the input first. */
export function blocksOf(spec: RunSpecJson | undefined): Block[] {
  const count = (value: unknown) => Math.max(0, Math.min(10_000, Number(value ?? 0) || 0));
  const blocks = (number: number, prefix: string, label: string): Block[] =>
    Array.from({ length: number }, (_, index) => ({
      prefix: `${prefix}/${index + 1}`,
      label: `${label}${index + 1}`,
    }));
  const layers = count(spec?.layers);
  if (spec?.model !== 'encdec') return blocks(layers, 'block', '');
  const decoder = count(spec.decoderLayers ?? layers);
  return [...blocks(layers, 'encoder_block', 'E'), ...blocks(decoder, 'block', 'D')];
}

export function seriesOf(block: Block, metric: BlockMetric): string {
  return `${block.prefix}/${metric.name}`;
}
