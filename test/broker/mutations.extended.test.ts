import './mutations.test.ts';
