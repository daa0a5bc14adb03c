package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

// errGone says that the connection has ended.
var errGone = errors.New("the connection has ended")

// unread is how many messages wait at most until the maker has time for them: it is busy for a moment now and then.
const unread = 1 << 16

// socket is a connection of the maker.
type socket struct {
	conn     *websocket.Conn
	messages chan []byte // closed when the connection has ended
}

// dial connects with the API key.
func dial(ctx context.Context, url, key string) (*socket, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, response, err := websocket.DefaultDialer.DialContext(ctx, url, http.Header{"Authorization": {"Bearer " + key}})
	if err != nil {
		if response != nil && response.StatusCode < http.StatusInternalServerError {
			return nil, fmt.Errorf("the handshake: %s", response.Status)
		}
		return nil, notNow{err}
	}
	s := &socket{conn, make(chan []byte, unread)}
	go func() {
		defer close(s.messages)
		for {
			_, message, err := conn.ReadMessage()
			if err != nil {
				return
			}
			s.messages <- message
		}
	}()
	return s, nil
}

// send sends a request. That the connection has ended is seen where it is read.
func (s *socket) send(request any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if err := s.conn.WriteMessage(websocket.TextMessage, text); err != nil {
		return errGone
	}
	return nil
}

// cut ends the connection without a word; close says it first.
func (s *socket) cut() { _ = s.conn.NetConn().Close() }

func (s *socket) close() {
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(time.Second))
	_ = s.conn.Close()
}

// request is what the maker sends.
type request struct {
	Op         string   `json:"op"`
	ID         string   `json:"id,omitempty"`
	Args       []string `json:"args,omitempty"`
	Data       any      `json:"data,omitempty"`
	ResumeFrom string   `json:"resume_from,omitempty"`
}

// message is what comes, as far as it says of what kind it is.
type message struct {
	Op       string          `json:"op"`
	Channel  string          `json:"channel"`
	ID       string          `json:"id"`
	Code     string          `json:"code"`
	Message  string          `json:"message"`
	Status   json.RawMessage `json:"status"` // a number in answers, a word of orders and movements
	Data     json.RawMessage `json:"data"`
	Position *string         `json:"position"`
}
