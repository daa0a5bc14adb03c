// Package onboarding holds the rules of the onboarding journal: owners (persons and corporates), their documents, the
// questionnaires and their responses, the entitlements that owners apply for, webhooks and notices, retention, and the
// times at which these become due.
//
// Personal data never enters here in the clear. The handler seals it with the owner's key before it makes a command. The
// rules store the ciphertext and cannot open it. Ids, kinds, times, states, sizes, tenants, categories, and the SHA-256
// of ciphertexts are in the clear. The handler also makes the ids of owners and documents, since the ciphertext is bound
// to them.
//
// The tenant of an owner is the broker of the user who registered the owner. Commands of clients find only active owners
// of their tenant; commands of operators find all owners. The handler checks scopes, because users are in another
// journal.
//
// A trigger is one application for an entitlement. One record creates it and the next record, a step, starts it. A
// record that changes the requirements of triggers also contains the remaining requirements, and the consequences:
// notices, an identification, an approval.
//
// A notice is an event that webhooks and the feed publish. Notices are numbered for each owner, so that a receiver can
// put them in order. The record with a notice also contains a delivery for each webhook. Each attempt of a delivery, and
// its consequences, are recorded.
//
// Rules have a number. Rules 2 forget finished deliveries except for the last few thousand. A command that replays a
// forgotten delivery carries its row and the sequence of the row. Rules 3 allow the replay of a delivery that waits for
// its retry. Rules 4 record the inputs of commands: see reconstruct.go. Rules 5 have policies and proposals. Rules 6 record an
// attempt that was under way when its delivery was canceled, and have reasons for the end of proposals. Golden journals
// (testdata/rules1, testdata/rules2) test that rules 1 and 2 still decide as they did.
//
// State.Arithmetic decides a record again and writes down the conditions about triggers: see explain.go.
//
// Start reading at State.Evolve and State.Decide; each command is in the file named after the subject.
package onboarding
