/** The suite of order.property.test.ts with five times as many changes. */
import './order.property.test.ts';
