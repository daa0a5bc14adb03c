package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// imageVariable is the environment variable that names an alternative image, for machines that cannot pull images. The
// image must have Java, a shell, and Kafka's libraries in /opt/kafka/libs.
const imageVariable = "PERPETUA_TEST_KAFKA_IMAGE"

// image returns the name of the image for containers of Kafka.
func image() string {
	if named := os.Getenv(imageVariable); named != "" {
		return named
	}
	return "apache/kafka:" + kafkaVersion
}

// imageLibraries is the folder of Kafka's libraries in the image.
const imageLibraries = "/opt/kafka/libs"

// containerLimit bounds the start of a container, including the download of its image, so that a stalled download
// leaves time for another method.
const containerLimit = 2 * time.Minute

// startContainer runs Kafka in a container. It fails if Docker does not answer.
//
// Kafka must advertise the port that Docker maps, which is known only once the container runs. So the container waits
// for its configuration file, which is copied into it after its start.
func startContainer(ctx context.Context, out io.Writer) (_ *Kafka, err error) {
	// Without Docker the library may panic while it searches for it.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no Docker: %v", r)
		}
	}()
	ctx, cancelAll := context.WithTimeout(ctx, containerLimit)
	defer cancelAll()
	// Close ends the containers; the library's reaper would need one more image.
	if err := setDefault("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return nil, err
	}
	if os.Getenv("DOCKER_HOST") == "" {
		// In a virtual machine the library may mistake the gateway for the Docker host.
		if err := setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1"); err != nil {
			return nil, err
		}
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, fmt.Errorf("no Docker: %w", err)
	}
	defer func() { _ = provider.Close() }()
	check, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := provider.Health(check); err != nil {
		return nil, fmt.Errorf("no Docker: %w", err)
	}
	image := image()
	fmt.Fprintf(out, "kafkatest: starting a container of %s\n", image)
	k := &Kafka{Origin: "a container of " + image}
	const configuration = "/tmp/server.properties"
	java := "java -cp '" + imageLibraries + "/*' "
	script := strings.Join([]string{
		// log.dirs is the last line: the file is complete.
		"while ! grep -qs ^log.dirs " + configuration + "; do sleep 0.1; done",
		java + "-Xmx64m " + formatClass + " format -t " + clusterID + " -c " + configuration,
		"exec " + java + strings.Join(serverOptions(), " ") + " " + serverClass + " " + configuration,
	}, " && ")
	container, err := testcontainers.Run(ctx, image,
		testcontainers.WithLogger(log.NewNoopLogger()),
		testcontainers.WithExposedPorts("9092/tcp"),
		testcontainers.WithEntrypoint("sh", "-c"),
		testcontainers.WithCmd(script),
		testcontainers.WithAdditionalLifecycleHooks(testcontainers.ContainerLifecycleHooks{
			PostStarts: []testcontainers.ContainerHook{func(ctx context.Context, c testcontainers.Container) error {
				endpoint, err := c.PortEndpoint(ctx, "9092/tcp", "")
				if err != nil {
					return err
				}
				k.brokers = []string{endpoint}
				return c.CopyToContainer(ctx, []byte(properties("0.0.0.0:9092", endpoint, "127.0.0.1:9093", "/tmp/log")), configuration, 0o644)
			}},
		}))
	stop := func() error {
		if container == nil {
			return nil
		}
		return testcontainers.TerminateContainer(container)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a container of %s: %w", image, err), stop())
	}
	if err := k.await(ctx, nil); err != nil {
		return nil, errors.Join(err, stop())
	}
	k.stop = stop
	return k, nil
}

// setDefault sets an environment variable unless it has a value.
func setDefault(name, value string) error {
	if os.Getenv(name) != "" {
		return nil
	}
	return os.Setenv(name, value)
}
