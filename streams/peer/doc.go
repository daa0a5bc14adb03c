// Package peer carries commands to the owner of a journal on another node, and answers back.
//
// A node has one stream to the owner of each shard: one HTTP/2 request whose body and response stay open. Both carry frames
// (frame.go): a Submit frame holds all commands that were waiting, an Answer frame all answers that were ready. Start reading
// at Router, which submits a command to this node's owner or over a stream; then Client and stream for the sending side, and
// Server and session for the owner's side.
//
// These rules prevent that a command is decided twice, or answered as not accepted although it was decided:
//
//   - A stream belongs to one term. The owner decides its commands in that term or not at all, and not after their deadline,
//     which is a time on the owner's clock.
//   - A node has one stream to an owner. Before the owner accepts a new one, it ends the earlier one, withdraws its undecided
//     commands. Its answer names the last command that it received over the earlier stream.
//   - A command that was never written has not been accepted. A command that was written is in doubt once the stream is lost.
//     It is answered by the record that the node itself reads from the log; as not accepted if the owner never received it, or
//     if the node reads that a later term has begun; and otherwise, at its deadline, as of unknown outcome.
//   - The key of a stream depends on the log, the journal, the term and the venue as each side knows them, so a node has no
//     stream to the owner of another log, such as a copy. Every frame carries a proof by this key that covers the frame's
//     number and direction. Nothing of a frame is used before the proof is verified.
//   - The owner grants each stream a number of commands and bytes that may be unanswered (credit). It ends a stream that sends
//     more, takes no answers, or is silent.
//   - A command carries the credential that it was accepted with and the sequence of the identity journal at which the node
//     judged it. An owner that has read further judges the credential again.
//
// The frames authenticate nodes but do not hide their content. Use https URLs between nodes where others can read the network.
package peer
