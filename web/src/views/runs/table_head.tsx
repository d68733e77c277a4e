// The head of the run table: a click on a column orders all runs by it.
import { formatCount } from '../../format/format';
import { type Column, nextOrder } from '../../state/columns';
import { setQuery } from '../../state/router';
import { cursorStep } from '../../state/selection';
import { order, pageWidth } from './runs_state';

/** Widths of the columns before the others, in CSS pixels; the name takes what is left. */
const pickWidth = { wide: 40, narrow: 40, phone: 30 };
const stateWidth = { wide: 104, narrow: 104, phone: 24 };
const phoneWidth = 64;
const menuWidth = { wide: 34, narrow: 34, phone: 28 };
const leastNameWidth = { wide: 180, narrow: 140, phone: 110 };

export function TableColumns({ columns }: { columns: readonly Column[] }) {
  const size = pageWidth.value;
  return (
    <colgroup>
      <col style={{ width: `${pickWidth[size]}px` }} />
      <col style={{ width: `${stateWidth[size]}px` }} />
      <col />
      {columns.map((column) => (
        <col key={column.name} style={{ width: `${widthOf(column)}px` }} />
      ))}
      <col style={{ width: `${menuWidth[size]}px` }} />
    </colgroup>
  );
}

function widthOf(column: Column): number {
  return pageWidth.value === 'phone' ? Math.min(phoneWidth, column.width) : column.width;
}

/** Below this the table scrolls sideways. */
export function leastWidth(columns: readonly Column[]): number {
  const size = pageWidth.value;
  const others = columns.reduce((sum, column) => sum + widthOf(column), 0);
  const own = pickWidth[size] + stateWidth[size] + leastNameWidth[size] + menuWidth[size];
  return own + others;
}

export function TableHead({ columns }: { columns: readonly Column[] }) {
  return (
    <thead>
      <tr aria-rowindex={1}>
        <th scope="col" class="pick">
          <span class="hidden">drawn</span>
        </th>
        <OrderedHead class="state-column" title="state" help="its state" field="state" />
        <OrderedHead class="name" title="name" help="its name" field="name" />
        {columns.map((column) => (
          <OrderedHead
            key={column.name}
            class={column.isNumber ? 'number' : column.name}
            title={column.title}
            help={column.help}
            field={column.order}
            atCursor={column.name === 'loss' || column.name === 'gradient_norm'}
          />
        ))}
        <th scope="col">
          <span class="hidden">what can be done</span>
        </th>
      </tr>
    </thead>
  );
}

interface HeadProps {
  class: string;
  title: string;
  help: string;
  /** '': no order by this. */
  field: string;
  /** Its values are those at the cursor of the charts. */
  atCursor?: boolean;
}

function OrderedHead({ class: kind, title, help, field, atCursor = false }: HeadProps) {
  const step = atCursor ? cursorStep.value : undefined;
  const text = step === undefined ? title : `${title} @ ${formatCount(step)}`;
  if (field === '') {
    return (
      <th scope="col" class={kind} title={help}>
        {text}
      </th>
    );
  }
  const isRising = order.value === field;
  const isFalling = order.value === `${field} desc`;
  const sort = isRising ? 'ascending' : isFalling ? 'descending' : undefined;
  return (
    <th scope="col" class={kind} {...(sort ? { 'aria-sort': sort } : {})}>
      <button
        type="button"
        class="order"
        title={`${help}\nclick to order by it`}
        onClick={() => setQuery({ order: nextOrder(order.peek(), field) })}
      >
        {text}
        {sort ? <span aria-hidden="true">{isRising ? ' ▲' : ' ▼'}</span> : null}
      </button>
    </th>
  );
}
