"""Calls itself org.freedesktop.login1 on the system bus, and answers what it is asked, if only that it does not know it; or never
answers, and makes the file of that name when it is asked for a session (arguments `silent` and the file). Says "ready" on
descriptor 3 when it has the name."""

import os
import sys

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
from gi.repository import GLib

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SystemBus()


def keep_silent(_bus, message):
    """Of a session: takes the call, and leaves it at that."""
    if message.get_member() != "CreateSession":
        return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
    open(sys.argv[2], "x").close()
    return dbus.lowlevel.HANDLER_RESULT_HANDLED


if sys.argv[1] == "silent":
    bus.add_message_filter(keep_silent)
bus.request_name("org.freedesktop.login1")
os.write(3, b"ready\n")
os.close(3)
GLib.MainLoop().run()
