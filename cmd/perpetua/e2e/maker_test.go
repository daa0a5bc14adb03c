package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// buildMaker builds testdata/maker against a client that the stock generator, pinned in that module, makes of the OpenAPI
// file as it is now.
func buildMaker(t *testing.T) (program string) {
	t.Helper()
	description, err := filepath.Abs("../../../schemas/openapi/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "maker")
	if err := os.CopyFS(dir, os.DirFS("testdata/maker")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "client"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"tool", "oapi-codegen", "-config", "oapi-codegen.yaml", description},
		{"vet", "./..."},
		{"build", "-o", "maker", "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, said)
		}
	}
	return filepath.Join(dir, "maker")
}

// TestMarketMaker has a stranger's market maker quote for as long as PERPETUA_TEST_MAKER says, while another customer takes
// from it, prices move, and the venue is killed twice. It drops its own connection, too. It ends with an error at the first
// moment at which its own idea of its orders, fills, positions and balance is not what the venue says.
func TestMarketMaker(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("PERPETUA_TEST_MAKER"))
	if err != nil {
		t.Skip("it takes minutes, and a generator from the module proxy: make maker")
	}
	program := buildMaker(t)
	v := startVenue(t)
	market := &takenMarket{v: v, random: rand.New(rand.NewPCG(1, 2)), index: map[string]float64{"BTCUSDC_PERP": 65000, "ETHUSDC_PERP": 3500}}
	for symbol := range market.index {
		market.move(symbol)
	}
	v.fund("10000000", "ANNA", "BEN")

	said := new(output)
	maker := exec.Command(program)
	maker.Env = append(os.Environ(), "MAKER_RUN_FILE="+filepath.Join(v.dir, "run.json"), "MAKER_USERNAME=broker-a", "MAKER_CUSTOMER=ANNA",
		"MAKER_FOR="+lasts.String(), "MAKER_SEED=7")
	maker.Stdout, maker.Stderr, maker.SysProcAttr = said, said, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := maker.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- maker.Wait() }()
	began, kills := time.Now(), 0
	for {
		select {
		case err := <-ended:
			market.judge(t, said.said(), err)
			if kills == 2 {
				compareWithFold(t, v)
			} else {
				t.Errorf("the venue was killed %d times", kills)
			}
			return
		case <-time.After(20 * time.Millisecond): // or taking would be all that the venue is busy with
			market.step()
		}
		if time.Since(began) > lasts*time.Duration(kills+1)/3 && kills < 2 {
			kills++
			v.kill()
			v.start()
		}
		if time.Since(began) > lasts+20*time.Minute {
			_ = maker.Process.Kill()
		}
	}
}

// takenMarket is what goes on around the maker.
type takenMarket struct {
	v      *venue
	random *rand.Rand
	index  map[string]float64
	taken  int
}

// step takes something from the maker, or moves an index price.
func (m *takenMarket) step() {
	m.v.t.Helper()
	symbol := [...]string{"BTCUSDC_PERP", "ETHUSDC_PERP"}[m.random.IntN(2)]
	if m.random.IntN(10) == 0 {
		m.move(symbol)
		return
	}
	action := [...]string{"buy", "sell"}[m.random.IntN(2)]
	amount := strconv.FormatFloat(0.01*float64(1+m.random.IntN(10)), 'f', 2, 64)
	a := m.v.do("broker-a", http.MethodPost, "/v1/customers/BEN/orders",
		map[string]any{"symbol": symbol, "action": action, "type": "market", "amount": amount})
	switch {
	case a.Status == http.StatusCreated:
		m.taken++
	case a.Status == http.StatusUnprocessableEntity && a.get("code") == "NO_LIQUIDITY", a.Status == http.StatusServiceUnavailable:
	default:
		m.v.t.Errorf("taking: %d %s", a.Status, a.Body)
	}
}

// move has an index price walk, never far from where it began.
func (m *takenMarket) move(symbol string) {
	m.v.t.Helper()
	start := map[string]float64{"BTCUSDC_PERP": 65000, "ETHUSDC_PERP": 3500}[symbol]
	m.index[symbol] += start * (0.0005*(m.random.Float64()-0.5) + 0.01*(start-m.index[symbol])/start)
	m.v.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/"+symbol, map[string]string{"price": fmt.Sprintf("%.2f", m.index[symbol])})
}

// judge looks at what the maker said at its end.
func (m *takenMarket) judge(t *testing.T, said string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("the maker ended with %v:\n%s", err, said)
	}
	var did struct{ Placed, Amended, Fills, Checks, Connections, Dropped int }
	if err := json.Unmarshal([]byte(said), &did); err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	t.Logf("%+v; taken %d times", did, m.taken)
	if did.Fills == 0 || did.Amended == 0 || did.Checks < 5 || did.Dropped == 0 || did.Connections < did.Dropped {
		t.Errorf("the maker did little: %s", said)
	}
}
