# The first example of the README: four orders, each in a thread of its own, and one lock that is kept while a payment is made.
import threading, time

stock = threading.Lock()

def charge(order):
    time.sleep(1)  # stands for a payment that takes a second

def place(order):
    with stock:
        charge(order)

threads = [threading.Thread(target=place, args=(order,)) for order in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
