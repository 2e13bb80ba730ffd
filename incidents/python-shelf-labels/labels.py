"""Tells the labels on the shelves what things cost."""
import os

import paho.mqtt.client as mqtt

RUN = os.environ["RUN"]


class Labels:
    def __init__(self, port):
        version = getattr(mqtt, "CallbackAPIVersion", None)
        self.client = mqtt.Client(version.VERSION2) if version else mqtt.Client()
        self.client.connect("127.0.0.1", port, keepalive=600)
        self.client.loop_start()

    def show(self, shelf, price):
        text = f"{price / 100:.2f}"
        told = self.client.publish(
            f"shelves/{shelf}", text, qos=1
        )
        told.wait_for_publish()
        return told.mid


def main():
    labels = Labels(int(open(RUN + "/broker.port").read()))
    for shelf, price in enumerate((199, 249, 1290)):
        print(labels.show(shelf, price), flush=True)


main()
